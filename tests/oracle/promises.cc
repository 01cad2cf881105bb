#include "tests/oracle/promises.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::oracle {

using base::Lsn;

bool Promises::Rewritten() const { return std::ranges::any_of(marks_, &Mark::rewrite); }

void Promises::Note(const Commit& commit, const Digest& state) {
  bool touched = false;
  for (const auto& change : commit.changes) {
    if (std::ranges::find(change.tables, table_) == change.tables.end()) continue;
    touched = true;
    if (change.of_rows()) continue;
    const bool rewrite = change.kind == Change::Kind::kRewrite;
    const bool told = rewrite && !types_.empty() && change.types != types_;
    if (rewrite) types_ = change.types;
    marks_.push_back({commit.end, rewrite, told});
  }
  if (touched) states_.push_back({commit.end, state});
  if (At(commit.end) == Kind::kOpen && !open_since_) open_since_ = commit.end;
}

Promises::Kind Promises::At(Lsn end) const {
  if (absent_) return Kind::kAbsent;
  if (Rewritten()) return Kind::kOpen;
  if (next_ == readings_.size() || marks_.empty()) return Kind::kExact;
  const Reading& reading = readings_[next_];
  return reading.asked_after < end && end <= reading.at ? Kind::kOpen : Kind::kExact;
}

const Reading* Promises::Due(Lsn upto) const {
  return next_ < readings_.size() && readings_[next_].at <= upto ? &readings_[next_] : nullptr;
}

Lsn Promises::StillFrom() const {
  Lsn from = readings_[next_].asked_after;
  for (const auto& mark : marks_) {
    if (mark.told) from = std::min(from, mark.end);
  }
  return from;
}

int64_t Promises::PreviousTx() const { return next_ == 0 ? 0 : readings_[next_ - 1].last_tx; }

std::string Promises::Settle(const Digest& shown) {
  const Reading& reading = readings_[next_++];
  if (marks_.empty()) {
    return fmt::format("{} was read whole at {} and had no reason to", table_,
                       reading.at.ToString());
  }
  const auto seen = std::ranges::find_if(states_.rbegin(), states_.rend(), [&](const State& state) {
    return state.end >= marks_.front().end && state.digest == shown;
  });
  if (seen == states_.rend()) {
    return fmt::format("{} as read whole at {} ({}) is no state that the source had since {}",
                       table_,
                       reading.at.ToString(), shown.ToString(), marks_.front().end.ToString());
  }
  std::erase_if(marks_, [&](const Mark& mark) { return mark.end <= seen->end; });
  if (absent_) begins_ = reading.at;
  absent_ = false;
  if (open_since_ && !Rewritten()) {
    spans_.emplace_back(*open_since_, reading.at);
    open_since_.reset();
  }
  return "";
}

}  // namespace tidemark::oracle
