#include "temporal/prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/kill_point.h"
#include "pg/wait.h"
#include "temporal/dataset.h"
#include "temporal/sealing.h"

namespace tidemark::temporal {

using base::Deadline;
using base::Error;
using base::QuoteIdentifier;

namespace {

constexpr std::chrono::milliseconds kLookEvery{200};

// The horizon goes to the end of the newest partition that is old enough as a whole.
constexpr const char* kMoveHorizon = R"sql(
UPDATE tidemark.dataset d SET tx_retained = p.tx_to
FROM (SELECT max(h.tx_to) AS tx_to FROM tidemark.history_partition h
      WHERE h.dataset = $1 AND h.tx_to <= $2) AS p
WHERE d.id = $1 AND p.tx_to > d.tx_retained
)sql";

constexpr const char* kDatasets = R"sql(
SELECT d.id, d.schema_name, d.table_name,
       coalesce(tidemark.journal_tx_at(j.id, pg_catalog.now() - r.span), 0)
FROM tidemark.journal j
JOIN tidemark.dataset d ON d.journal = j.id
CROSS JOIN LATERAL (
  SELECT coalesce($3::jsonb ->> (d.schema_name || '.' || d.table_name), nullif($2, ''))::interval
    AS span) r
WHERE j.name = $1 AND d.tx_first IS NOT NULL AND r.span IS NOT NULL
ORDER BY d.id
)sql";

// Whether a snapshot is open that may still read by the old horizon. The transaction that moved it
// is known by the row that it wrote.
constexpr const char* kOlderSnapshots = R"sql(
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_stat_activity a, tidemark.dataset d
  WHERE d.id = $1 AND a.backend_xmin IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
    AND a.datname = pg_catalog.current_database()
    AND pg_catalog.age(a.backend_xmin) >= pg_catalog.age(d.xmin))
)sql";

constexpr const char* kDue = R"sql(
SELECT h.number FROM tidemark.history_partition h JOIN tidemark.dataset d ON d.id = h.dataset
WHERE h.dataset = $1 AND h.tx_to <= d.tx_retained ORDER BY h.number
)sql";

constexpr const char* kHorizon = R"sql(
SELECT coalesce((SELECT b.system_time::text FROM tidemark.basis_journal b
                 WHERE b.journal = d.journal AND b.tx_last >= d.tx_retained
                 ORDER BY b.tx_last, b.system_time LIMIT 1), '')
FROM tidemark.dataset d WHERE d.id = $1 AND d.tx_retained > 0
)sql";

bool OlderSnapshotsOpen(pg::Connection& store, int dataset) {
  return store.Execute(kOlderSnapshots, {std::to_string(dataset)}).boolean(0, 0);
}

// How many; nullopt when a reader holds the history for longer than the moment that is waited for.
std::optional<int> DropPartitions(pg::Connection& store, const Dataset& dataset) {
  try {
    pg::Transaction tx(store);
    store.Execute("SET LOCAL lock_timeout = '2s'");
    store.Execute(fmt::format("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", dataset.History()));
    // Another process may have dropped them meanwhile.
    const auto due = store.Execute(kDue, {std::to_string(dataset.id)});
    for (int i = 0; i < due.rows(); ++i) {
      const auto number = due.str(i, 0);
      store.Execute(fmt::format("DROP TABLE IF EXISTS {0}_p{1}_sealed; DROP TABLE {0}_p{1}",
                                dataset.History(), number));
      store.Execute("DELETE FROM tidemark.history_partition WHERE dataset = $1 AND number = $2",
                    {std::to_string(dataset.id), number});
    }
    base::KillPoint("prune.before_commit");
    std::move(tx).Commit();
    return due.rows();
  } catch (const Error& error) {
    if (error.state().str() != "55P03") throw;  // lock_not_available
    return std::nullopt;
  }
}

Pruned PruneDataset(pg::Connection& store, const Dataset& dataset, const std::string& tx_horizon,
                    Deadline deadline, const std::stop_token& stop) {
  const std::string id = std::to_string(dataset.id);
  Pruned pruned{.table = dataset.name, .horizon = ""};
  store.Execute(kMoveHorizon, {id, tx_horizon});
  base::KillPoint("prune.horizon_moved");
  pg::Bell bell;
  for (;;) {
    if (store.Execute(kDue, {id}).rows() == 0) break;
    if (!OlderSnapshotsOpen(store, dataset.id)) {
      if (const auto dropped = DropPartitions(store, dataset)) {
        pruned.partitions = *dropped;
        break;
      }
    }
    pruned.waits = deadline.passed();
    if (pruned.waits) break;
    bell.Wait(-1, false, deadline.Min(Deadline::After(kLookEvery)), stop);
  }
  const auto horizon = store.Execute(kHorizon, {id});
  if (horizon.rows() == 1) pruned.horizon = horizon.str(0, 0);
  return pruned;
}

std::string JsonText(const std::map<std::string, std::string>& values) {
  return nlohmann::json(values).dump();
}

}  // namespace

std::vector<Pruned> Prune(pg::Connection& store, const std::vector<Retention>& retentions,
                          Deadline deadline, std::stop_token stop) {
  std::vector<Pruned> all;
  for (const auto& retention : retentions) {
    const auto rows =
        store.Execute(kDatasets, {retention.journal, retention.span, JsonText(retention.by_table)});
    for (int i = 0; i < rows.rows(); ++i) {
      Dataset dataset;
      dataset.id = static_cast<int>(rows.int64(i, 0));
      dataset.name = {rows.str(i, 1), rows.str(i, 2)};
      all.push_back(PruneDataset(store, dataset, rows.str(i, 3), deadline, stop));
    }
  }
  return all;
}

int64_t Erase(pg::Connection& store, const base::QualifiedName& table,
              const std::vector<std::pair<std::string, std::string>>& key) {
  const auto found = store.Execute(
      "SELECT d.id, d.journal FROM tidemark.dataset d "
      "WHERE d.schema_name = $1 AND d.table_name = $2 AND d.tx_first IS NOT NULL",
      {table.schema, table.name});
  if (found.rows() == 0) {
    throw Error(base::kUndefinedTable, fmt::format("table {} is not kept here", table.Display()));
  }
  const int id = static_cast<int>(found.int64(0, 0));
  const auto datasets = LoadDatasets(store, static_cast<int>(found.int64(0, 1)));
  const Dataset& dataset = *std::ranges::find(datasets, id, &Dataset::id);
  std::string condition;
  std::vector<pg::Parameter> values;
  for (const auto& name : dataset.key_columns) {
    const auto given = std::ranges::find(key, name, &std::pair<std::string, std::string>::first);
    if (given == key.end()) break;
    values.emplace_back(given->second);
    condition += fmt::format("{}{} = ${}", condition.empty() ? "" : " AND ", QuoteIdentifier(name),
                             values.size());
  }
  if (dataset.key_columns.empty() || values.size() != dataset.key_columns.size() ||
      values.size() != key.size()) {
    throw Error(base::kUndefinedColumn,
                fmt::format("what is erased must be named by the key of {}", table.Display()))
        .Hint(dataset.key_columns.empty()
                  ? std::string("The table has no key.")
                  : fmt::format("The key is ({}).", fmt::join(dataset.key_columns, ", ")));
  }
  pg::Transaction tx(store);
  DiscardRewritten(store, dataset);
  const auto erased = store.Execute(
      fmt::format("DELETE FROM {} WHERE {}", dataset.History(), condition), values);
  // What verify has noted may name keys.
  store.Execute("DELETE FROM tidemark.verification WHERE dataset = $1", {std::to_string(id)});
  store.Execute(
      "INSERT INTO tidemark.erasure (dataset, key_columns, versions) VALUES ($1, $2::text[], $3)",
      {std::to_string(id), TextArray(dataset.key_columns), std::to_string(erased.affected())});
  std::move(tx).Commit();
  return erased.affected();
}

}  // namespace tidemark::temporal
