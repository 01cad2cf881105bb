// The target of a request, taken apart: path and query, percent-decoded. Pure. RFC 9112, section
// 3.2; RFC 3986; in queries "+" is a space, as forms send it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tidemark::http {

struct Target {
  std::string raw_path;                      // as it was sent, without the query
  std::string path;                          // decoded
  std::map<std::string, std::string> query;  // decoded; of a name that comes twice the first

  /// Throws 22023 when it is neither a path nor an http address, and for what PercentDecoded
  /// refuses.
  static Target Parse(std::string_view text);
};

/// Throws 22023 for a "%" without two hexadecimal digits and for "%00", 22021 for what is no UTF-8.
std::string PercentDecoded(std::string_view text);

}  // namespace tidemark::http
