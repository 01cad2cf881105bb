#include "source/postgres/settle.h"

#include <algorithm>
#include <set>

#include "pg/wait.h"

namespace tidemark::source {

namespace {

constexpr std::chrono::milliseconds kLookEvery{20};

constexpr const char* kRunning = R"sql(
SELECT l.virtualtransaction
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock'
  AND l.pid <> pg_catalog.pg_backend_pid()
  AND (a.datid IS NULL OR a.datname = pg_catalog.current_database())
  AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
UNION ALL
SELECT 'prepared ' || p.transaction::text
FROM pg_catalog.pg_prepared_xacts p
WHERE p.database = pg_catalog.current_database()
)sql";

}  // namespace

std::vector<std::string> RunningTransactions(pg::Connection& connection) {
  const auto rows = connection.Execute(kRunning);
  std::vector<std::string> running;
  for (int i = 0; i < rows.rows(); ++i) running.push_back(rows.str(i, 0));
  return running;
}

bool WaitUntilEnded(pg::Connection& connection, const std::vector<std::string>& transactions,
                    std::chrono::milliseconds span, const Limit& limit) {
  const auto until = base::Deadline::After(span).Min(limit.deadline);
  const std::set<std::string> awaited(transactions.begin(), transactions.end());
  pg::Bell bell;
  for (;;) {
    limit.Check();
    const auto running = RunningTransactions(connection);
    // A transaction's virtual number is not given again by its session, so none is waited for
    // twice.
    if (std::none_of(running.begin(), running.end(),
                     [&](const std::string& one) { return awaited.contains(one); })) {
      return true;
    }
    if (until.passed()) return false;
    bell.Wait(-1, false, base::Deadline::After(kLookEvery).Min(until), limit.stop);
  }
}

}  // namespace tidemark::source
