// An http or https address as far as a client needs it. Pure. RFC 3986, without user information
// and fragment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::http {

struct Url {
  bool secure = true;  // https
  std::string host;    // a name, or an address without brackets
  uint16_t port = 443;
  std::string target;  // path and query, at least "/"

  /// Throws 22023, without showing the text (its path or query may be a secret), when it is no
  /// address of that kind.
  static Url Parse(std::string_view text);

  /// The host is this machine whatever a name server says: an address of 127.0.0.0/8, ::1,
  /// localhost.
  bool IsLoopback() const;
  bool IsAddress() const;  // not a name
  /// As the Host header has it: in brackets where need be, with the port unless it is the usual
  /// one.
  std::string Authority() const;
};

}  // namespace tidemark::http
