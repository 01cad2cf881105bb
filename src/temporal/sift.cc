#include "temporal/sift.h"

#include <algorithm>
#include <utility>

namespace tidemark::temporal {

namespace {

// Current rows that may wait for their equals: 25 MB, and as much again while half of them leave.
constexpr size_t kCurrentRowsMax = size_t{3} << 18;
// So many are still in the processor's caches.
constexpr size_t kCurrentRowsNear = size_t{1} << 14;
// Memory of incoming rows that wait.
constexpr size_t kIncomingBytesMax = size_t{16} << 20;
// Current rows that may have left without being met: 8 MB.
constexpr size_t kUnmetMax = size_t{1} << 20;
// After so large a part of the relation at least one row in ten must have been met, or the two
// sides are not in the same order at all.
constexpr int64_t kTrialRowsLeast = 100'000;
constexpr int64_t kTrialShare = 4;
constexpr int64_t kMetShareLeast = 10;

}  // namespace

Sift::Sift(const std::string& store_dsn, const Dataset& dataset,
           const std::vector<DatasetColumn>& columns, int64_t live_rows, std::stop_token stop)
    : stop_(std::move(stop)), live_rows_(live_rows), sieve_(kCurrentRowsMax) {
  scan_.emplace(store_dsn, dataset, columns, digester_, stop_);
  file_ = scan_->file();
}

// One row. False when there are no more, or none are wanted.
bool Sift::ReadCurrent() {
  if (next_row_ == rows_.size()) {
    if (!scan_) return false;
    auto rows = scan_->Next(stop_);
    if (!rows) {
      complete_ = true;
      scan_.reset();
      return false;
    }
    rows_ = std::move(*rows);
    next_row_ = 0;
    if (sieve_.unmet().size() > kUnmetMax) GiveUp();
  }
  const auto& row = rows_[next_row_++];
  sieve_.GiveCurrent(row.digest, row.place);
  last_ = row.place;
  ++current_;
  return true;
}

// Too many incoming rows wait: their equals may lie further on. If current rows wait, too, the
// oldest go.
void Sift::MakeRoom(std::string& sent) {
  while (sieve_.incoming_bytes() > kIncomingBytesMax) {
    if (sieve_.current_waiting() >= kCurrentRowsMax / 2 || !ReadCurrent()) sieve_.Release(sent);
  }
}

void Sift::Pass(std::string_view row, std::string_view fields, std::string& sent) {
  ++incoming_;
  if (current_ < incoming_) ReadCurrent();
  // What current has here may have moved elsewhere in the source: then its next row is the equal
  // one.
  if (sieve_.GiveIncoming(digester_.Of(fields), row, sent) &&
      sieve_.current_waiting() < kCurrentRowsNear) {
    ReadCurrent();
  }
  MakeRoom(sent);
  if (scan_ && incoming_ >= std::max(kTrialRowsLeast, live_rows_ / kTrialShare) &&
      met() < incoming_ / kMetShareLeast) {
    GiveUp();
  }
}

bool Sift::PassHeld(std::string& sent) {
  while (sieve_.incoming_waiting() > 0 && ReadCurrent()) {
  }
  const size_t before = sent.size();
  while (sieve_.incoming_waiting() > 0 && sent.size() == before) sieve_.Release(sent);
  return sent.size() > before;
}

Remainder Sift::Finish() {
  GiveUp();
  Remainder remainder{.unmet = sieve_.TakeUnmet(), .beyond = {}, .met = met(), .file = file_};
  // What was read and not given lies behind the last place, too.
  if (!complete_ || next_row_ < rows_.size()) remainder.beyond = last_;
  return remainder;
}

}  // namespace tidemark::temporal
