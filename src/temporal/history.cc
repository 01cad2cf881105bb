#include "temporal/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace tidemark::temporal {

using base::Error;

namespace {

// A partition of this many rows is rewritten in seconds and keeps plans short.
constexpr int64_t kRowsAimed = 1'000'000;
constexpr int64_t kFirstWidth = 65'536;
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
  int64_t width = kFirstWidth;
  if (newest.number > 0) {
    const int64_t last = newest.to - newest.from;
    const double wanted =
        static_cast<double>(last) * kRowsAimed / static_cast<double>(std::max<int64_t>(1, newest.rows));
    width = std::clamp(static_cast<int64_t>(std::min(wanted, 4.0 * static_cast<double>(last))),
                       std::max(kLeastWidth, last / 4), kMostWidth);
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

bool SealOne(pg::Connection& store) {
  const auto full = store.Execute(
      R"sql(
SELECT p.dataset, p.number, p.tx_from, p.tx_to, d.keying = 'key',
       (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(k), ', ')
        FROM pg_catalog.unnest(d.key_columns) AS k)
FROM tidemark.history_partition p
JOIN tidemark.dataset d ON d.id = p.dataset
JOIN tidemark.resume r ON r.journal = d.journal
WHERE NOT p.sealed AND p.tx_to <= r.tx_last ORDER BY p.dataset, p.number LIMIT 1
)sql");
  if (full.rows() == 0) return false;
  const auto dataset = full.str(0, 0);
  const auto number = full.str(0, 1);
  const auto history = fmt::format("tidemark_history.d{}", dataset);
  const auto partition = fmt::format("{}_p{}", history, number);
  const auto sealed = fmt::format("{}_p{}_sealed", history, number);
  const bool keyed = full.boolean(0, 4);
  const auto key = full.str(0, 5);
  {
    pg::Transaction tx(store);
    store.Execute(fmt::format(
        R"sql(
DROP TABLE IF EXISTS {sealed};
CREATE TABLE {sealed} (LIKE {history} INCLUDING DEFAULTS);
INSERT INTO {sealed} SELECT * FROM {partition} ORDER BY _from{key_after};
ALTER TABLE {sealed} ADD CONSTRAINT span CHECK (_to >= {from} AND _to < {to});
CREATE INDEX ON {sealed} (_from)
)sql",
        fmt::arg("sealed", sealed), fmt::arg("history", history),
        fmt::arg("partition", partition), fmt::arg("key_after", keyed ? ", " + key : ""),
        fmt::arg("from", full.str(0, 2)), fmt::arg("to", full.str(0, 3))));
    if (keyed) store.Execute(fmt::format("CREATE INDEX ON {} ({}, _to)", sealed, key));
    std::move(tx).Commit();
  }
  store.Execute("VACUUM (ANALYZE, FREEZE) " + sealed);
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
UPDATE tidemark.history_partition SET sealed = true WHERE dataset = {dataset} AND number = {number}
)sql",
        fmt::arg("history", history), fmt::arg("partition", partition), fmt::arg("sealed", sealed),
        fmt::arg("from", full.str(0, 2)), fmt::arg("to", full.str(0, 3)),
        fmt::arg("dataset", dataset), fmt::arg("number", number)));
    std::move(tx).Commit();
  } catch (const Error& error) {
    if (error.state() != base::kLockNotAvailable) throw;
    spdlog::debug("sealing {} waits for its readers", partition);
    return false;
  }
  spdlog::debug("sealed {}", partition);
  return true;
}

}  // namespace tidemark::temporal
