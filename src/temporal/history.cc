#include "temporal/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace tidemark::temporal {

using base::Error;

namespace {

constexpr int64_t kLeastWidth = 256;
constexpr int64_t kMostWidth = int64_t{1} << 40;

}  // namespace

HistoryPartitions::Newest& HistoryPartitions::Load(const Dataset& dataset) {
  const auto [found, added] = newest_.try_emplace(dataset.id);
  if (added) {
    const auto rows = store_->Execute(
        R"sql(
SELECT p.number, p.tx_from, p.tx_to,
       greatest(0, coalesce((SELECT c.reltuples FROM pg_catalog.pg_class c
                             WHERE c.oid = to_regclass(format('tidemark_history.d%s_p%s',
                                                              p.dataset, p.number))), 0))::bigint
FROM tidemark.history_partition p WHERE p.dataset = $1 ORDER BY p.number DESC LIMIT 1
)sql",
        {std::to_string(dataset.id)});
    if (rows.rows() == 1) {
      found->second = {static_cast<int>(rows.int64(0, 0)), rows.int64(0, 1), rows.int64(0, 2),
                       rows.int64(0, 3)};
    }
  }
  return found->second;
}

void HistoryPartitions::Cover(const Dataset& dataset, int64_t tx) {
  Newest& newest = Load(dataset);
  if (tx < newest.to) return;
  int64_t width = limits_.first_transactions;
  if (newest.number > 0) {
    const int64_t last = newest.to - newest.from;
    const double wanted = static_cast<double>(last) * static_cast<double>(limits_.rows_aimed) /
                          static_cast<double>(std::max<int64_t>(1, newest.rows));
    width = std::clamp(static_cast<int64_t>(std::min(wanted, 4.0 * static_cast<double>(last))),
                       std::min(kLeastWidth, last), kMostWidth);
  }
  const Newest next{newest.number + 1, newest.to, std::max(newest.to + width, tx + 1), 0};
  const auto partition = fmt::format("tidemark_history.d{}_p{}", dataset.id, next.number);
  // Attaching takes a lock that stops no reader; creating as a partition would.
  store_->Execute(fmt::format(
      R"sql(
CREATE TABLE {0} (LIKE {1} INCLUDING DEFAULTS);
ALTER TABLE {1} ATTACH PARTITION {0} FOR VALUES FROM ({2}) TO ({3})
)sql",
      partition, dataset.History(), next.from, next.to));
  store_->Execute(
      "INSERT INTO tidemark.history_partition (dataset, number, tx_from, tx_to) "
      "VALUES ($1, $2, $3, $4)",
      {std::to_string(dataset.id), std::to_string(next.number), std::to_string(next.from),
       std::to_string(next.to)});
  newest = next;
}

void HistoryPartitions::Count(const Dataset& dataset, int64_t rows) {
  newest_[dataset.id].rows += rows;
}

namespace {

struct FullPartition {
  std::string dataset, number, from, to, key;
  bool rewritten;
  std::string History() const { return "tidemark_history.d" + dataset; }
  std::string Name() const { return fmt::format("{}_p{}", History(), number); }
  std::string Sealed() const { return Name() + "_sealed"; }
};

std::optional<FullPartition> FindFull(pg::Connection& store) {
  const auto rows = store.Execute(
      R"sql(
SELECT p.dataset, p.number, p.tx_from, p.tx_to,
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(k), ', ')
                 FROM pg_catalog.unnest(d.key_columns) AS k), ''),
       p.rewritten_by IS NOT NULL
FROM tidemark.history_partition p
JOIN tidemark.dataset d ON d.id = p.dataset
JOIN tidemark.resume r ON r.journal = d.journal
WHERE NOT p.sealed AND p.tx_to <= r.tx_last ORDER BY p.dataset, p.number LIMIT 1
)sql");
  if (rows.rows() == 0) return std::nullopt;
  return FullPartition{rows.str(0, 0), rows.str(0, 1), rows.str(0, 2),
                       rows.str(0, 3), rows.str(0, 4), rows.boolean(0, 5)};
}

void Rewrite(pg::Connection& store, const FullPartition& p) {
  pg::Transaction tx(store);
  store.Execute(fmt::format(
      R"sql(
DROP TABLE IF EXISTS {sealed};
CREATE TABLE {sealed} (LIKE {history} INCLUDING DEFAULTS);
INSERT INTO {sealed} SELECT * FROM {partition} ORDER BY _from{key_after};
ALTER TABLE {sealed} ADD CONSTRAINT span CHECK (_to >= {from} AND _to < {to});
CREATE INDEX ON {sealed} (_from)
)sql",
      fmt::arg("sealed", p.Sealed()), fmt::arg("history", p.History()),
      fmt::arg("partition", p.Name()), fmt::arg("key_after", p.key.empty() ? "" : ", " + p.key),
      fmt::arg("from", p.from), fmt::arg("to", p.to)));
  if (!p.key.empty()) {
    store.Execute(fmt::format("CREATE INDEX ON {} ({}, _to)", p.Sealed(), p.key));
  }
  store.Execute(
      "UPDATE tidemark.history_partition SET rewritten_by = pg_catalog.pg_current_xact_id() "
      "WHERE dataset = $1 AND number = $2",
      {p.dataset, p.number});
  std::move(tx).Commit();
}

// A snapshot older than the rewrite would find the new partition empty. Frozen rows are seen by
// every snapshot, and rows can be frozen only when no older snapshot is left.
bool Freeze(pg::Connection& store, const FullPartition& p) {
  store.Execute("VACUUM (FREEZE, ANALYZE) " + p.Sealed());
  return store
      .Execute(
          R"sql(
SELECT pg_catalog.age(c.relfrozenxid) < pg_catalog.age(p.rewritten_by::xid)
FROM pg_catalog.pg_class c, tidemark.history_partition p
WHERE c.oid = $1::regclass AND p.dataset = $2 AND p.number = $3
)sql",
          {p.Sealed(), p.dataset, p.number})
      .boolean(0, 0);
}

bool SwapIn(pg::Connection& store, const FullPartition& p) {
  try {
    pg::Transaction tx(store);
    store.Execute(fmt::format(
        R"sql(
SET LOCAL lock_timeout = '150ms';
ALTER TABLE {history} DETACH PARTITION {partition};
ALTER TABLE {history} ATTACH PARTITION {sealed} FOR VALUES FROM ({from}) TO ({to});
ALTER TABLE {sealed} DROP CONSTRAINT span;
DROP TABLE {partition};
ALTER TABLE {sealed} RENAME TO d{dataset}_p{number};
UPDATE tidemark.history_partition SET sealed = true, rewritten_by = NULL
WHERE dataset = {dataset} AND number = {number}
)sql",
        fmt::arg("history", p.History()), fmt::arg("partition", p.Name()),
        fmt::arg("sealed", p.Sealed()), fmt::arg("from", p.from), fmt::arg("to", p.to),
        fmt::arg("dataset", p.dataset), fmt::arg("number", p.number)));
    std::move(tx).Commit();
    return true;
  } catch (const Error& error) {
    if (error.state() != base::kLockNotAvailable) throw;
    return false;
  }
}

}  // namespace

bool SealOne(pg::Connection& store) {
  const auto partition = FindFull(store);
  if (!partition) return false;
  if (!partition->rewritten) Rewrite(store, *partition);
  if (!Freeze(store, *partition)) {
    spdlog::debug("sealing {} waits for older snapshots", partition->Name());
    return false;
  }
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (SwapIn(store, *partition)) {
      spdlog::debug("sealed {}", partition->Name());
      return true;
    }
  }
  spdlog::debug("sealing {} waits for its users", partition->Name());
  return false;
}

}  // namespace tidemark::temporal
