// The store: an ordinary PostgreSQL database with Tidemark's schema in it. Opening connections to
// it, and bringing its schema to the version of this program. One thread per connection.
#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/connection.h"

namespace tidemark::temporal {

/// Opens a connection for internal statements: empty search path, durable commits, plain planner.
/// Throws 08001 and the server's own refusals.
pg::Connection OpenStore(const std::string& dsn, base::Deadline deadline,
                         std::stop_token stop = {});

/// Applies the numbered migrations that the store lacks, each in one transaction. Concurrent calls
/// wait for each other. Throws 0A000 when the store is newer than this program or its server older
/// than PostgreSQL 15.
void Migrate(pg::Connection& store);

/// True when the database holds a Tidemark schema of this program's version.
bool IsCurrent(pg::Connection& store);

}  // namespace tidemark::temporal
