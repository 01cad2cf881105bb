#include "source/postgres/source_session.h"

#include <utility>

namespace tidemark::source {

pg::Connection OpenSession(const SessionOptions& options, base::Deadline deadline,
                           std::stop_token stop) {
  auto session = pg::Connection::Open({.dsn = options.dsn,
                                       .application_name = options.application_name,
                                       .replication = options.replication,
                                       .timeouts = false,
                                       .settings = {{"search_path", ""},
                                                    {"row_security", "off"},
                                                    {"DateStyle", "ISO, YMD"},
                                                    {"IntervalStyle", "postgres"},
                                                    {"TimeZone", "UTC"},
                                                    {"extra_float_digits", "3"},
                                                    {"bytea_output", "hex"},
                                                    {"lc_monetary", "C"}}},
                                      deadline, std::move(stop));
  if (SendsRawText(session)) session.Execute("SET client_encoding = 'SQL_ASCII'");
  return session;
}

bool SendsRawText(const pg::Connection& session) {
  return session.parameter("server_encoding") == "SQL_ASCII";
}

}  // namespace tidemark::source
