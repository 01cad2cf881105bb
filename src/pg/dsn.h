// A libpq connection string taken apart, for those who must know where it points without
// connecting. Passwords are not kept. Pure. Manual: "Connection Strings".
#pragma once

#include <cstdint>
#include <string>

namespace tidemark::pg {

/// Where a connection string points; defaults filled in from PG* variables and libpq's own.
struct Endpoint {
  std::string host;  // a folder with a Unix socket when it begins with a slash
  uint16_t port = 5432;
  std::string database, user;
  /// host:port/database as people read it.
  std::string Display() const;
};

/// Reads `dsn`, keyword/value or URI; of several hosts the first. Throws 22023 when libpq cannot
/// read it; the error does not show the string.
Endpoint EndpointOf(const std::string& dsn);

}  // namespace tidemark::pg
