// What becomes of a request once its head is read, before anything is done for it. Pure.
#pragma once

#include <string_view>
#include <variant>

#include "http/message.h"
#include "http/router.h"

namespace tidemark::http {

/// The page, or why there is none: 401 without the token, 404, 405. Who does not show the token
/// learns nothing of which pages there are.
std::variant<Router::Route, Response> Admit(const Router& router, std::string_view token,
                                            const Request& request, std::string_view raw_path);

}  // namespace tidemark::http
