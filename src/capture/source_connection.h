// Connections to a PostgreSQL source, set so that what they read is the same whatever the source's
// own defaults: no search path, no row filtering by policy, one output style.
#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/connection.h"

namespace tidemark::capture {

pg::Connection OpenSource(const std::string& dsn, base::Deadline deadline, std::stop_token stop);
/// A walsender of the same source.
pg::Connection OpenReplication(const std::string& dsn, base::Deadline deadline,
                               std::stop_token stop);

}  // namespace tidemark::capture
