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

// After readers were in the way, the next attempt to close a partition waits this long.
constexpr std::chrono::seconds kRetryInterval{10};

std::string PartitionName(const Dataset& dataset, const std::string& number) {
  return fmt::format("tidemark_history.d{}_p{}", dataset.id, number);
}

}  // namespace

void CreateFirstPartition(pg::Connection& store, const Dataset& dataset) {
  store.Execute(
      fmt::format("CREATE TABLE {} PARTITION OF {} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
                  PartitionName(dataset, "1"), dataset.History()));
  store.Execute(
      "INSERT INTO tidemark.history_partition (dataset, number, tx_from) VALUES ($1, 1, 0)",
      {std::to_string(dataset.id)});
}

void HistoryPartitions::RollOver(const Dataset& dataset, int64_t tx_next) {
  Open& open = open_[dataset.id];
  if (open.loaded && open.rows < limits_.rows_aimed) return;
  const auto found = store_->Execute(
      R"sql(
SELECT p.number, p.tx_from,
       greatest(0, (SELECT c.reltuples FROM pg_catalog.pg_class c
                    WHERE c.oid = to_regclass(format('tidemark_history.d%s_p%s', p.dataset,
                                                     p.number))))::bigint
FROM tidemark.history_partition p WHERE p.dataset = $1 AND p.tx_to IS NULL
)sql",
      {std::to_string(dataset.id)});
  if (!open.loaded) {
    open.loaded = true;
    open.rows += found.int64(0, 2);
  }
  const auto now = base::Deadline::Clock::now();
  const int64_t tx_from = found.int64(0, 1);
  if (open.rows < limits_.rows_aimed || tx_next <= tx_from || now - open.tried < kRetryInterval) {
    return;
  }
  open.tried = now;
  const auto partition = PartitionName(dataset, found.str(0, 0));
  const auto next = std::to_string(found.int64(0, 0) + 1);
  // Checked beforehand, so that closing it needs no scan under the exclusive lock.
  store_->Execute(fmt::format(
      R"sql(
ALTER TABLE {0} DROP CONSTRAINT IF EXISTS span;
ALTER TABLE {0} ADD CONSTRAINT span CHECK (_to < {1}) NOT VALID;
ALTER TABLE {0} VALIDATE CONSTRAINT span
)sql",
      partition, tx_next));
  const std::string lower = tx_from == 0 ? "MINVALUE" : std::to_string(tx_from);
  try {
    pg::Transaction tx(*store_);
    store_->Execute(fmt::format(
        R"sql(
SET LOCAL lock_timeout = '100ms';
LOCK TABLE {history} IN ACCESS EXCLUSIVE MODE;
ALTER TABLE {history} DETACH PARTITION {partition};
ALTER TABLE {history} ATTACH PARTITION {partition} FOR VALUES FROM ({lower}) TO ({upper});
ALTER TABLE {partition} DROP CONSTRAINT span;
CREATE TABLE {opened} PARTITION OF {history} FOR VALUES FROM ({upper}) TO (MAXVALUE);
UPDATE tidemark.history_partition SET tx_to = {upper} WHERE dataset = {id} AND tx_to IS NULL;
INSERT INTO tidemark.history_partition (dataset, number, tx_from) VALUES ({id}, {next}, {upper})
)sql",
        fmt::arg("history", dataset.History()), fmt::arg("partition", partition),
        fmt::arg("lower", lower), fmt::arg("upper", tx_next),
        fmt::arg("opened", PartitionName(dataset, next)), fmt::arg("id", dataset.id),
        fmt::arg("next", next)));
    std::move(tx).Commit();
    open.rows = 0;
  } catch (const Error& error) {
    if (error.state() != base::kLockNotAvailable) throw;
    spdlog::debug("closing {} waits for its readers", partition);
    store_->Execute(fmt::format("ALTER TABLE {} DROP CONSTRAINT IF EXISTS span", partition));
  }
}

namespace {

struct ClosedPartition {
  std::string dataset, number, from, to, key;
  bool rewritten;
  std::string History() const { return "tidemark_history.d" + dataset; }
  std::string Name() const { return fmt::format("{}_p{}", History(), number); }
  std::string Sealed() const { return Name() + "_sealed"; }
};

std::optional<ClosedPartition> FindClosed(pg::Connection& store) {
  const auto rows = store.Execute(
      R"sql(
SELECT p.dataset, p.number,
       CASE WHEN p.tx_from = 0 THEN 'MINVALUE' ELSE p.tx_from::text END, p.tx_to,
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(k), ', ')
                 FROM pg_catalog.unnest(d.key_columns) AS k), ''),
       p.rewritten_by IS NOT NULL
FROM tidemark.history_partition p
JOIN tidemark.dataset d ON d.id = p.dataset
WHERE NOT p.sealed AND p.tx_to IS NOT NULL ORDER BY p.dataset, p.number LIMIT 1
)sql");
  if (rows.rows() == 0) return std::nullopt;
  return ClosedPartition{rows.str(0, 0), rows.str(0, 1), rows.str(0, 2),
                       rows.str(0, 3), rows.str(0, 4), rows.boolean(0, 5)};
}

void Rewrite(pg::Connection& store, const ClosedPartition& p) {
  pg::Transaction tx(store);
  store.Execute(fmt::format(
      R"sql(
DROP TABLE IF EXISTS {sealed};
CREATE TABLE {sealed} (LIKE {history} INCLUDING DEFAULTS);
INSERT INTO {sealed} SELECT * FROM {partition} ORDER BY _from{key_after};
ALTER TABLE {sealed} ADD CONSTRAINT span CHECK ({lower}_to < {to});
CREATE INDEX ON {sealed} (_from)
)sql",
      fmt::arg("sealed", p.Sealed()), fmt::arg("history", p.History()),
      fmt::arg("partition", p.Name()), fmt::arg("key_after", p.key.empty() ? "" : ", " + p.key),
      fmt::arg("lower", p.from == "MINVALUE" ? "" : "_to >= " + p.from + " AND "),
      fmt::arg("to", p.to)));
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
bool Freeze(pg::Connection& store, const ClosedPartition& p) {
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

bool SwapIn(pg::Connection& store, const ClosedPartition& p) {
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
  const auto partition = FindClosed(store);
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
