#include "capture/source_connection.h"

#include "source/postgres/source_session.h"

namespace tidemark::capture {

pg::Connection OpenSource(const std::string& dsn, base::Deadline deadline, std::stop_token stop) {
  return source::OpenSession({.dsn = dsn}, deadline, std::move(stop));
}

pg::Connection OpenReplication(const std::string& dsn, base::Deadline deadline,
                               std::stop_token stop) {
  return source::OpenSession({.dsn = dsn, .replication = true}, deadline, std::move(stop));
}

}  // namespace tidemark::capture
