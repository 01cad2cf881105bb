// What went wrong, as an answer: application/problem+json with the SQLSTATE and hint that the same
// error has everywhere else in Tidemark. RFC 9457.
#pragma once

#include <string_view>

#include "base/error.h"
#include "http/message.h"

namespace tidemark::http {

/// {type: "about:blank", title: the status's own phrase, status, detail: the error's message,
/// sqlstate, hint and explanation (its detail) where it has them}.
Response Problem(int status, const base::Error& error);

/// The same with the status that fits the error's SQLSTATE: 400 for what the request got wrong, 404
/// for what there is not, 409 for what is not possible now, 410 for what has been pruned, 413, 429,
/// 503 for a store that is away or has no room, 500 otherwise.
Response Problem(const base::Error& error);

/// "Not Found" for 404; "Unknown" for a number that is no status we use.
std::string_view StatusPhrase(int status);

}  // namespace tidemark::http
