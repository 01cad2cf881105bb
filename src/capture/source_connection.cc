#include "capture/source_connection.h"

namespace tidemark::capture {

pg::Connection OpenSource(const std::string& dsn, base::Deadline deadline, std::stop_token stop) {
  return pg::Connection::Open({.dsn = dsn,
                               .application_name = "tidemark",
                               .settings = {{"search_path", ""},
                                            {"row_security", "off"},
                                            {"statement_timeout", "0"},
                                            {"lock_timeout", "0"},
                                            {"idle_in_transaction_session_timeout", "0"},
                                            {"DateStyle", "ISO"},
                                            {"IntervalStyle", "postgres"},
                                            {"TimeZone", "UTC"},
                                            {"extra_float_digits", "3"},
                                            {"bytea_output", "hex"}}},
                              deadline, std::move(stop));
}

pg::Connection OpenReplication(const std::string& dsn, base::Deadline deadline,
                               std::stop_token stop) {
  return pg::Connection::Open(
      {.dsn = dsn, .application_name = "tidemark", .replication = true}, deadline,
      std::move(stop));
}

}  // namespace tidemark::capture
