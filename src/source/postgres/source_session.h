// Sessions at a PostgreSQL source, plain ones and walsenders, set so that what they send is the
// same whatever the defaults of the server, the database and the role are: no search path, one
// output style, no time limits, no row hidden by policy.
#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/connection.h"

namespace tidemark::source {

struct SessionOptions {
  std::string dsn;
  std::string application_name = "tidemark";
  bool replication = false;
};

/// Throws as pg::Connection::Open does.
pg::Connection OpenSession(const SessionOptions& options, base::Deadline deadline,
                           std::stop_token stop);

/// Whether the session sends text as the source has it, in no encoding that is known (SQL_ASCII),
/// instead of converting it to UTF-8. Were the server asked to convert, it would refuse the first
/// value that is not UTF-8, and a stream could never get past it.
bool SendsRawText(const pg::Connection& session);

}  // namespace tidemark::source
