// The part of comparison.h that holds tables that change against what is promised of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/identifier.h"
#include "tests/oracle/comparison.h"

namespace tidemark::oracle {

using base::Lsn;

// The basis of a reading holds nothing but txs of its own.
void Comparison::LoadReadings() {
  const auto tables = store_->Execute(
      "SELECT table_name, tx_first FROM tidemark.dataset WHERE tx_first IS NOT NULL "
      "AND schema_name = 'public'");
  for (int i = 0; i < tables.rows(); ++i) {
    const auto name = tables.str(i, 0);
    for (const auto& shape : ChangingTables()) {
      if (shape.name != name || shapes_.contains(name)) continue;
      shapes_.emplace(name, shape);
      changing_.try_emplace(name, name, /*absent=*/tables.int64(i, 1) > 1);
    }
  }
  const auto rows = store_->Execute(R"sql(
WITH bases AS (
  SELECT journal, basis, system_time, tx_last,
         lag(tx_last, 1, 0::bigint) OVER (PARTITION BY journal ORDER BY system_time) AS tx_before
  FROM tidemark.basis_journal
), readings AS (
  SELECT d.table_name, s.tx_last, (SELECT min(t.tx) FROM tidemark.tx t WHERE t.journal = s.journal
                                   AND t.tx > s.tx_before) AS tx_first, r.requested_at
  FROM tidemark.resync r JOIN tidemark.dataset d ON d.id = r.dataset
  JOIN tidemark.basis b ON b.capture = r.capture JOIN bases s ON s.basis = b.number
  WHERE r.ended_at IS NOT NULL
  UNION ALL
  SELECT d.table_name, s.tx_last, d.tx_first, NULL
  FROM tidemark.dataset d
  JOIN bases s ON s.journal = d.journal AND d.tx_first BETWEEN s.tx_before + 1 AND s.tx_last
  WHERE d.tx_first > 1
)
SELECT r.table_name, r.tx_first, r.tx_last, t.end_lsn, coalesce(a.end_lsn, '0/0'), coalesce(a.tx, 0)
FROM readings r JOIN tidemark.tx t ON t.tx = r.tx_last
LEFT JOIN tidemark.tx a ON a.tx = (SELECT max(s.tx_last) FROM bases s
                                   WHERE s.system_time <= r.requested_at)
ORDER BY r.tx_first
)sql");
  std::map<std::string, std::vector<Reading>> readings;
  for (int i = 0; i < rows.rows(); ++i) {
    readings[rows.str(i, 0)].push_back({rows.int64(i, 1), rows.int64(i, 2),
                                        Lsn::Parse(rows.text(i, 3)), Lsn::Parse(rows.text(i, 4)),
                                        rows.int64(i, 5)});
  }
  for (auto& [name, promises] : changing_) promises.SetReadings(std::move(readings[name]));
}

Promises::Kind Comparison::PromisedAt(const std::string& table, Lsn end) const {
  if (const auto found = changing_.find(table); found != changing_.end()) {
    return found->second.At(end);
  }
  return shapes_.contains(table) ? Promises::Kind::kExact : Promises::Kind::kAbsent;
}

std::vector<std::string> Comparison::ExactTables(Lsn end) const {
  std::vector<std::string> names;
  for (const auto& [name, table] : shapes_) {
    if (!table.large && PromisedAt(name, end) == Promises::Kind::kExact) names.push_back(name);
  }
  return names;
}

bool Comparison::CompareAbsent(const std::string& table, const std::string& position) {
  try {
    store_->Execute(fmt::format("SELECT FROM tidemark.as_of_position(NULL::public.{}, {})", table,
                                position));
    ADD_FAILURE() << table << " has an answer at " << position << ", before it was there";
    return false;
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kDatetimeOverflow) << error.Full();
    return error.state() == base::kDatetimeOverflow;
  }
}

bool Comparison::CompareReadings(Lsn upto) {
  for (auto& [name, promises] : changing_) {
    while (const Reading* reading = promises.Due(upto)) {
      if (!CompareReading(name, promises, *reading)) return false;
    }
  }
  return true;
}

bool Comparison::CompareReading(const std::string& table, Promises& promises,
                                const Reading& reading) {
  ++readings_;
  const Lsn still_from = promises.StillFrom();
  int64_t still_from_tx = reading.asked_after_tx;
  if (still_from < reading.asked_after) {
    const auto next = txs_.upper_bound(still_from);
    still_from_tx = next == txs_.begin() ? 0 : std::prev(next)->second.tx;
  }
  still_from_tx = std::max(still_from_tx, promises.PreviousTx());
  const bool absent = promises.absent();
  const auto shown = DigestAt(table, "as_of_tx", std::to_string(reading.first_tx));
  if (!shown) return false;
  if (const auto wrong = promises.Settle(*shown); !wrong.empty()) {
    ADD_FAILURE() << wrong;
    return false;
  }
  if (!absent) {
    const auto moved = store_->Value(fmt::format(
        "SELECT count(*) FROM public_history.{0} WHERE (tx_from > {1} AND tx_from < {2}) OR "
        "(tx_to > {1} AND tx_to < {2})",
        table, still_from_tx, reading.first_tx));
    EXPECT_EQ(moved, "0") << table << " did not stand still between txs " << still_from_tx
        << " and "
                          << reading.first_tx;
    if (moved != "0") return false;
  }
  return promises.open() ||
         (CompareAt({table}, "as_of_tx", std::to_string(reading.last_tx)) &&
          CompareAt({table}, "as_of_position", base::QuoteLiteral(reading.at.ToString())));
}

}  // namespace tidemark::oracle
