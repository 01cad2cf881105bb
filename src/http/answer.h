// Requests and responses between Beast's types and ours. Pure. RFC 9110.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "http/message.h"

namespace tidemark::http {

using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;
using BeastResponse = boost::beast::http::response<boost::beast::http::string_body>;

/// Head and query; the body is left where it is. Throws 22023 for a target or a head that is wrong.
/// `raw_path` receives the path as it was sent.
Request RequestOf(const BeastRequest& request, std::string& raw_path);

struct AnswerOptions {
  bool head_only = false;   // HEAD: everything but the body
  bool keep_alive = false;
  unsigned version = 11;
};
BeastResponse AnswerOf(Response response, const AnswerOptions& options);

/// The head of an endless stream of events.
std::string EventStreamHead(bool chunked);

}  // namespace tidemark::http
