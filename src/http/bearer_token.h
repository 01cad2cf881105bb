// Whether a request shows the token that the server asks for. RFC 6750, section 2.1.
#pragma once

#include <string_view>

#include "http/message.h"

namespace tidemark::http {

/// Takes as long wherever `given` begins to differ. The lengths are no secret.
bool EqualInConstantTime(std::string_view given, std::string_view secret);

/// True when there is no token to show, and when the request shows it.
bool ShowsToken(const Request& request, std::string_view token);

/// 401 with WWW-Authenticate.
Response TokenWanted();

}  // namespace tidemark::http
