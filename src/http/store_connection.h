// A connection to the store for those who serve it.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "pg/connection.h"

namespace tidemark::http {

inline constexpr std::chrono::seconds kStoreConnectLimit{5};

/// Throws 08001 when the store is away, 57P03 when it has no schema of this program's version yet.
pg::Connection OpenCurrentStore(const std::string& dsn, const std::stop_token& stop);

}  // namespace tidemark::http
