#include "temporal/nullability.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/identifier.h"
#include "base/kill_point.h"
#include "temporal/inheritance.h"
#include "temporal/reshape.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;

namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void RunLocked(pg::Connection& store, const std::string& sql) {
  pg::Transaction tx(store);
  store.Execute("SET LOCAL lock_timeout = '2s'");
  store.Execute(sql);
  std::move(tx).Commit();
}

}  // namespace

std::map<std::pair<int, std::string>, int> LoadNotNull(pg::Connection& store, int journal) {
  const auto rows = store.Execute(
      R"sql(
SELECT d.id, a.attname, count(*)
FROM tidemark.dataset d
CROSS JOIN LATERAL (VALUES (d.relid::oid), (to_regclass('tidemark_current.d' || d.id)::oid)) AS r(oid)
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid
WHERE d.journal = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
GROUP BY d.id, a.attname
)sql",
      {std::to_string(journal)});
  std::map<std::pair<int, std::string>, int> relations;
  for (int i = 0; i < rows.rows(); ++i) {
    relations[{static_cast<int>(rows.int64(i, 0)), rows.str(i, 1)}] =
        static_cast<int>(rows.int64(i, 2));
  }
  return relations;
}

bool AllowNulls(pg::Connection& store, const Dataset& dataset,
                const std::vector<std::string>& columns) {
  const auto strict = NotNullColumns(store, dataset);
  std::string sql;
  for (const auto& name : columns) {
    if (!Contains(strict, name) || Contains(dataset.key_columns, name)) continue;
    // From 18 on what a child has of its parent goes with the parent's.
    sql += fmt::format(
        "ALTER TABLE {0} ALTER COLUMN {2} DROP NOT NULL; "
        "ALTER TABLE {1} ALTER COLUMN {2} DROP NOT NULL; ",
        dataset.name.Quoted(), dataset.Current(), QuoteIdentifier(name));
  }
  if (sql.empty()) return false;
  store.Execute("SAVEPOINT tidemark_nulls; SET LOCAL lock_timeout = '2s'");
  try {
    // What a table inherits it cannot drop, and what it drops goes to its heirs.
    const bool linked = TakeOffLinks(store, dataset.id);
    store.Execute(sql);
    if (linked) PutOnLinks(store, dataset.journal, dataset.id);
    store.Execute("SET LOCAL lock_timeout TO DEFAULT; RELEASE SAVEPOINT tidemark_nulls");
  } catch (const base::Error& error) {
    if (!error.IsConnectionLoss()) {
      store.Execute("ROLLBACK TO SAVEPOINT tidemark_nulls; RELEASE SAVEPOINT tidemark_nulls");
    }
    throw;
  }
  return true;
}

bool RefuseNulls(pg::Connection& store, const Dataset& dataset,
                 const std::vector<std::string>& columns) {
  const auto strict = NotNullColumns(store, dataset);
  const auto refused = RefusedByHeirs(store, dataset, columns);
  const bool all = refused.size() == columns.size();
  std::string conditions, sets;
  for (const auto& name : refused) {
    if (Contains(strict, name)) continue;
    const auto column = QuoteIdentifier(name);
    conditions += fmt::format("{}{} IS NOT NULL", conditions.empty() ? "" : " AND ", column);
    sets += fmt::format("{}ALTER COLUMN {} SET NOT NULL", sets.empty() ? "" : ", ", column);
  }
  if (conditions.empty()) return all;
  const std::string current = dataset.Current();
  RunLocked(store, fmt::format("ALTER TABLE {} ADD CONSTRAINT tidemark_not_null CHECK ({}) NOT VALID",
                               current, conditions));
  base::KillPoint("nulls.constrained");
  try {
    store.Execute(fmt::format("ALTER TABLE {} VALIDATE CONSTRAINT tidemark_not_null", current));
    // It spares SET NOT NULL its own look at the rows.
    RunLocked(store, fmt::format("ALTER TABLE {0} {2}; ALTER TABLE {1} {2}; "
                                 "ALTER TABLE {0} DROP CONSTRAINT tidemark_not_null",
                                 current, dataset.name.Quoted(), sets));
  } catch (const base::Error& error) {
    if (!error.IsConnectionLoss()) DropNullConstraints(store);
    throw;
  }
  return all;
}

void DropNullConstraints(pg::Connection& store) {
  const auto left = store.Execute(R"sql(
SELECT c.conrelid::regclass
FROM pg_catalog.pg_constraint c
WHERE c.conname = 'tidemark_not_null' AND c.connamespace = 'tidemark_current'::regnamespace
)sql");
  for (int i = 0; i < left.rows(); ++i) {
    RunLocked(store, fmt::format("ALTER TABLE {} DROP CONSTRAINT tidemark_not_null",
                                 left.text(i, 0)));
  }
}

}  // namespace tidemark::temporal
