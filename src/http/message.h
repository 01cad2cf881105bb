// One HTTP request and its answer as values, without sockets: what the router hands to a page and
// gets back. RFC 9110.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::http {

struct Request {
  std::string method;                        // GET, POST, …
  std::string path;                          // percent-decoded, without the query
  std::map<std::string, std::string> query;  // percent-decoded
  std::map<std::string, std::string> headers;  // names in lower case; repeated ones joined by ", "
  std::string body;                          // exactly as it was sent

  /// A header's value by its name in lower case; nullopt where it is missing.
  std::optional<std::string_view> Header(const std::string& name) const {
    const auto found = headers.find(name);
    if (found == headers.end()) return std::nullopt;
    return found->second;
  }
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

}  // namespace tidemark::http
