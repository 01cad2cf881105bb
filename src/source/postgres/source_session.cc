#include "source/postgres/source_session.h"

#include <utility>

namespace tidemark::source {

namespace {

constexpr int kFirstVersionWithTransactionTimeout = 170000;

}  // namespace

pg::Connection OpenSession(const SessionOptions& options, base::Deadline deadline,
                           std::stop_token stop) {
  auto session = pg::Connection::Open({.dsn = options.dsn,
                                       .application_name = options.application_name,
                                       .replication = options.replication,
                                       .settings = {{"statement_timeout", "0"},
                                                    {"search_path", ""},
                                                    {"row_security", "off"},
                                                    {"lock_timeout", "0"},
                                                    {"idle_in_transaction_session_timeout", "0"},
                                                    {"idle_session_timeout", "0"},
                                                    {"DateStyle", "ISO, YMD"},
                                                    {"IntervalStyle", "postgres"},
                                                    {"TimeZone", "UTC"},
                                                    {"extra_float_digits", "3"},
                                                    {"bytea_output", "hex"},
                                                    {"lc_monetary", "C"}}},
                                      deadline, std::move(stop));
  if (session.server_version() >= kFirstVersionWithTransactionTimeout) {
    session.Execute("SET transaction_timeout = 0");
  }
  if (SendsRawText(session)) session.Execute("SET client_encoding = 'SQL_ASCII'");
  return session;
}

bool SendsRawText(const pg::Connection& session) {
  return session.parameter("server_encoding") == "SQL_ASCII";
}

}  // namespace tidemark::source
