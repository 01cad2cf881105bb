// A server that soon ends whatever takes long or is idle, as some are set up.
#pragma once

#include <fmt/format.h>

#include <chrono>

#include "pg/connection.h"

namespace tidemark::tests {

/// Later sessions of the connection's database begin with every timeout that the server knows at
/// `limit`.
inline void MakeImpatient(pg::Connection& on, std::chrono::milliseconds limit) {
  on.Execute(fmt::format(R"sql(
DO $$
DECLARE
  timeout text;
BEGIN
  FOR timeout IN SELECT name FROM pg_settings WHERE name IN (
      'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
      'idle_session_timeout', 'transaction_timeout')
  LOOP
    EXECUTE format('ALTER DATABASE %I SET %I = {}', current_database(), timeout);
  END LOOP;
END $$
)sql", limit.count()));
}

}  // namespace tidemark::tests
