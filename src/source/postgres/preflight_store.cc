#include "source/postgres/preflight_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/identifier.h"
#include "source/postgres/preflight_server.h"

namespace tidemark::source {

namespace {

// What the transaction that publishes a first copy locks of each table: the table that users see, its
// view, current rows, row versions, history, the open partition and its index; all indexes that users
// see; and where values may lie out of line, the TOAST tables of four of these, with their indexes.
constexpr int64_t kLocksPerTable = 7, kLocksForToast = 8;

// How many locks the server has room for, and for how many transactions.
constexpr const char* kRoom = R"sql(
SELECT s.transactions * pg_catalog.current_setting('max_locks_per_transaction')::bigint,
       s.transactions
FROM (SELECT pg_catalog.current_setting('max_connections')::bigint
             + pg_catalog.current_setting('max_prepared_transactions')::bigint
               AS transactions) s
)sql";

// Of how many tables $1 values may lie out of line.
constexpr const char* kWithToast = R"sql(
SELECT count(DISTINCT t.id) FROM pg_catalog.unnest($1::oid[]) AS t(id)
CROSS JOIN LATERAL (SELECT t.id AS relid
                    UNION ALL SELECT p.relid FROM pg_catalog.pg_partition_tree(t.id) p) AS m
JOIN pg_catalog.pg_class c ON c.oid = m.relid
WHERE c.reltoastrelid <> 0
)sql";

int64_t WithToast(pg::Connection& source, const std::vector<PublishedTable>& tables) {
  std::vector<pg::Oid> oids;
  for (const auto& table : tables) oids.push_back(table.relation.oid);
  return source.Execute(kWithToast, {fmt::format("{{{}}}", fmt::join(oids, ","))}).int64(0, 0);
}

bool AnyAttached(pg::Connection& store, const std::vector<PublishedTable>& tables) {
  if (store.Value("SELECT pg_catalog.to_regclass('tidemark.dataset') IS NOT NULL") != "t") return false;
  std::string names;
  for (const auto& table : tables) {
    const auto& name = table.relation.name;
    names += fmt::format("{}({}, {})", names.empty() ? "" : ", ", base::QuoteLiteral(name.schema),
                         base::QuoteLiteral(name.name));
  }
  return store.Value("SELECT EXISTS (SELECT FROM tidemark.dataset WHERE tx_first IS NOT NULL "
                     "AND (schema_name, table_name) IN (" + names + "))") == "t";
}

}  // namespace

void CheckStoreLocks(pg::Connection& source, const PreflightOptions& options,
                     PreflightReport& report) {
  if (options.store == nullptr || report.tables.empty()) return;
  const auto row = options.store->Execute(kRoom);
  const int64_t room = row.int64(0, 0), tables = static_cast<int64_t>(report.tables.size());
  int64_t needed = kLocksPerTable * tables;
  for (const auto& table : report.tables) {
    needed += static_cast<int64_t>(table.relation.indexes.size());
  }
  if (needed + kLocksForToast * tables <= room) return;
  needed += kLocksForToast * WithToast(source, report.tables);
  // Once some are there, others are attached one by one.
  if (needed <= room || AnyAttached(*options.store, report.tables)) return;
  report.problems.push_back(
      {Severity::kRefusesAll, "",
       fmt::format("the store has room for {} locks, and the first copy of {} tables needs {} to be "
                   "published",
                   room, tables, needed),
       fmt::format("ALTER SYSTEM SET max_locks_per_transaction = {}; then restart the store",
                   2 * needed / row.int64(0, 1)),
       kConfigurationLimitExceeded});
}

}  // namespace tidemark::source
