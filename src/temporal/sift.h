// The rows of a complete capture on their way into its stage, without those that current already
// has: so an unchanged relation is read on both sides and written on none. Reads current beside the
// source (current_scan.h), in step, and lets equal rows cancel each other out (sieve.h): where both
// lie in about the same order, as they do after a first capture, all find each other. Where they do
// not it costs little more than staging all of them. docs/design/0011. Bounded memory. One thread.
//
//   source ──► encoded row ──► sieve ──► stage            rows that are new, changed or displaced
//   current ─► digest, place ──┘  └────► Remainder        rows that were not met
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "temporal/batch_copy.h"
#include "temporal/current_scan.h"
#include "temporal/dataset.h"
#include "temporal/row_digest.h"
#include "temporal/sieve.h"

namespace tidemark::temporal {

/// The current rows that a sift has left to be compared.
struct Remainder {
  std::vector<RowPlace> unmet;
  std::optional<RowPlace> beyond;  // and all rows behind this place; 0: all rows
  int64_t met = 0;                 // how many are in the source as they are
  pg::Oid file = 0;                // CurrentFile when they were read
};

class Sift final : public RowFilter {
 public:
  /// `columns` are the source's, all of them binary, of the same types in the dataset, and all that
  /// it has. `live_rows`: how many there are now.
  Sift(const std::string& store_dsn, const Dataset& dataset,
       const std::vector<DatasetColumn>& columns, int64_t live_rows, std::stop_token stop);

  void Pass(std::string_view row, std::string_view fields, std::string& sent) override;
  bool PassHeld(std::string& sent) override;

  int64_t met() const { return sieve_.met(); }
  /// After the copy's end. Ends the scan. Call once.
  Remainder Finish();

 private:
  bool ReadCurrent();
  void MakeRoom(std::string& sent);
  void GiveUp() { scan_.reset(); }

  RowDigester digester_;
  std::stop_token stop_;
  int64_t live_rows_;
  Sieve sieve_;
  std::optional<CurrentScan> scan_;  // until all is read, or no more is to be
  pg::Oid file_;
  bool complete_ = false;   // all of current was read
  CurrentScan::Rows rows_;  // of current, not yet given
  size_t next_row_ = 0;
  int64_t incoming_ = 0, current_ = 0;  // rows so far
  RowPlace last_ = 0;
};

}  // namespace tidemark::temporal
