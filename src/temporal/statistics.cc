#include "temporal/statistics.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

constexpr const char* kOutdated = R"sql(
WITH analyzed AS (
  SELECT s.relid, greatest(s.last_analyze, s.last_autoanalyze) AS at
  FROM pg_catalog.pg_stat_all_tables s
), tree AS (
  SELECT d.relid AS seen, pg_catalog.to_regclass('tidemark_versions.d' || d.id) AS versions,
         pg_catalog.to_regclass('tidemark_current.d' || d.id) AS current,
         pg_catalog.to_regclass('tidemark_history.d' || d.id) AS history
  FROM tidemark.dataset d WHERE d.relid IS NOT NULL
)
SELECT pg_catalog.format('%s, %s', t.seen::regclass, t.versions)
FROM tree t
JOIN analyzed c ON c.relid = t.current
LEFT JOIN analyzed v ON v.relid = t.versions
WHERE greatest(c.at, (SELECT max(p.at) FROM pg_catalog.pg_inherits i
                      JOIN analyzed p ON p.relid = i.inhrelid
                      WHERE i.inhparent = t.history)) > coalesce(v.at, '-infinity')
  AND coalesce(v.at <= pg_catalog.clock_timestamp() - $1::interval, true)
)sql";

}  // namespace

void RefreshStatistics(pg::Connection& store, std::chrono::seconds age_least) {
  const auto outdated = store.Execute(kOutdated, {fmt::format("{} s", age_least.count())});
  for (int i = 0; i < outdated.rows(); ++i) {
    try {
      pg::Transaction tx(store);
      store.Execute("SET LOCAL lock_timeout = '500ms'; ANALYZE " + outdated.str(i, 0));
      std::move(tx).Commit();
    } catch (const base::Error& error) {  // in use by others, dropped or renamed: the next time
      if (error.state() != base::kUndefinedTable && error.state() != base::kLockNotAvailable) throw;
    }
  }
}

}  // namespace tidemark::temporal
