#include "temporal/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/identifier.h"
#include "base/log.h"

namespace tidemark::temporal {

using base::Error;

namespace {

// After readers were in the way, the next attempt to close a partition waits this long.
constexpr std::chrono::seconds kRetryInterval{10};

// The open partition is read whole by every query AS OF an instant before its newest rows, beside the
// current table; and the smaller its index, the sooner a batch has its rows there. So it is a part of
// the current table, except where closing would be the greater cost.
constexpr int64_t kPartOfCurrent = 4;
constexpr int64_t kRowsLeast = 65'536;

// The open partition takes whatever ends at tx_from or later.
void CreateOpen(pg::Connection& store, const Dataset& dataset, int number, int64_t tx_from) {
  store.Execute(fmt::format(
      "CREATE TABLE {} (CONSTRAINT since CHECK (_to >= {})) INHERITS ({}); {}",
      dataset.OpenHistory(), tx_from, dataset.History(),
      dataset.keying == Keying::kKey ? KeyIndexSql(dataset.OpenHistory(), dataset.key_columns) : ""));
  store.Execute(
      "INSERT INTO tidemark.history_partition (dataset, number, tx_from) VALUES ($1, $2, $3)",
      {std::to_string(dataset.id), std::to_string(number), std::to_string(tx_from)});
}

}  // namespace

std::string KeyIndexSql(const std::string& partition, const std::vector<std::string>& key_columns) {
  std::string columns;
  for (const auto& name : key_columns) columns += base::QuoteIdentifier(name) + ", ";
  return key_columns.empty() ? "" : fmt::format("CREATE INDEX ON {} ({}_to)", partition, columns);
}

void CreateFirstPartition(pg::Connection& store, const Dataset& dataset) {
  CreateOpen(store, dataset, 1, 0);
}

void HistoryPartitions::RollOver(const Dataset& dataset, int64_t tx_next) {
  Open& open = open_[dataset.id];
  if (open.loaded && open.rows < open.aimed) return;
  const auto found = store_->Execute(
      R"sql(
SELECT p.number, p.tx_from,
       greatest(0, (SELECT c.reltuples FROM pg_catalog.pg_class c
                    WHERE c.oid = to_regclass($2)))::bigint,
       greatest(0, (SELECT c.reltuples FROM pg_catalog.pg_class c
                    WHERE c.oid = to_regclass($3)))::bigint
FROM tidemark.history_partition p WHERE p.dataset = $1 AND p.tx_to IS NULL
)sql",
      {std::to_string(dataset.id), dataset.OpenHistory(), dataset.Current()});
  if (!open.loaded) {
    open.loaded = true;
    open.rows += found.int64(0, 2);
  }
  open.aimed = std::min(limits_.rows_aimed, std::max(kRowsLeast, found.int64(0, 3) / kPartOfCurrent));
  const auto now = base::Deadline::Clock::now();
  if (open.rows < open.aimed || tx_next <= found.int64(0, 1) ||
      now - open.tried < kRetryInterval) {
    return;
  }
  open.tried = now;
  const int number = static_cast<int>(found.int64(0, 0));
  const auto closed = fmt::format("d{}_p{}", dataset.id, number);
  try {
    pg::Transaction tx(*store_);
    // What is closed gets its upper bound when it is sealed: proving it would need a scan under the
    // lock.
    store_->Execute(fmt::format(
        R"sql(
SET LOCAL lock_timeout = '100ms';
LOCK TABLE {history} IN ACCESS EXCLUSIVE MODE;
ALTER TABLE {open} RENAME TO {closed};
UPDATE tidemark.history_partition SET tx_to = {upper} WHERE dataset = {id} AND tx_to IS NULL
)sql",
        fmt::arg("history", dataset.History()), fmt::arg("open", dataset.OpenHistory()),
        fmt::arg("closed", closed), fmt::arg("upper", tx_next), fmt::arg("id", dataset.id)));
    CreateOpen(*store_, dataset, number + 1, tx_next);
    std::move(tx).Commit();
    open.rows = 0;
    open.tried = {};
  } catch (const Error& error) {
    if (error.state() != base::kLockNotAvailable) throw;
    spdlog::debug("closing {} waits for its readers", closed);
  }
}

}  // namespace tidemark::temporal
