// The part of mirror_stream.h that applies what was received, publishes it and acknowledges it.
#include <algorithm>
#include <utility>

#include "capture/mirrored_table.h"

namespace tidemark::capture {

using base::Deadline;
using base::Lsn;
using base::Timestamp;

namespace {

// A keep-alive says that every commit that the source had decoded has been sent. A commit takes
// its time stamp a moment before it can be decoded, hence the margin.
constexpr int64_t kKeepaliveMarginUs = 1'000'000;
// How often the receipt of keep-alives is stored on an idle stream: when only time has passed, and
// when the source's log has moved on.
constexpr std::chrono::milliseconds kReceiptInterval{1000};
constexpr std::chrono::milliseconds kProgressInterval{100};

Timestamp Now() { return Timestamp::FromSystem(std::chrono::system_clock::now()); }

}  // namespace

bool MirrorStream::BatchFull() const {
  return changes_ >= limits_.batch_changes_max || bytes_ >= limits_.batch_bytes_max ||
         commits_.size() >= limits_.batch_changes_max;
}

// A part of a drain: all but the newest commit, which says where the journal stands.
void MirrorStream::StoreDrained() {
  ApplyPending();
  const auto newest = commits_.back();
  commits_.pop_back();
  temporal::StoreCommits(*store_, journal_->id, commits_);
  commits_.assign(1, newest);
}

void MirrorStream::OpenStoreTransaction() {
  if (open_ || draining_) return;
  open_.emplace(*store_);
  applier_.BeginTransaction();
}

void MirrorStream::ApplyTable(Table& table) {
  table.puts += table.transition->puts();
  table.deletions += table.transition->deletions();
  table.rows_added += table.transition->rows_added();
  if (table.transition->empty()) return;
  OpenStoreTransaction();
  at_work_ = &table;
  applier_.Apply(*table.transition);
  at_work_ = nullptr;
}

void MirrorStream::ApplyPending() {
  for (auto& [oid, table] : tables_) {
    if (table->transition && !table->transition->empty()) ApplyTable(*table);
  }
  applied_ += changes_;
  changes_ = 0;
  bytes_ = 0;
}

std::vector<temporal::Member> MirrorStream::TakeMembers() {
  std::vector<temporal::Member> members;
  for (auto& [oid, table] : tables_) {
    if (!table->changed) continue;
    members.push_back({table->dataset->id, table->puts, table->deletions, table->rows_added});
    table->puts = table->deletions = table->rows_added = 0;
    table->changed = false;
  }
  return members;
}

void MirrorStream::PublishPending() {
  at_work_ = nullptr;
  ApplyPending();
  OpenStoreTransaction();
  const Lsn end = commits_.back().end_lsn;
  temporal::NewBasis basis{.journal = journal_->id,
                           .capture = std::exchange(capture_, std::nullopt),
                           .commits = std::move(commits_),
                           .members = TakeMembers(),
                           .received = end,
                           .received_time = last_source_time_,
                           .extracted_from = extracted_from_,
                           .extracted_to = Now()};
  auto tx = std::move(*open_);
  open_.reset();
  temporal::Publish(std::move(tx), *lease_, basis);
  commits_.clear();
  applied_ = 0;
  reshaped_ = false;
  stored_ = end;
  received_ = std::max(received_, end);
  received_time_ = last_source_time_;
  stream_->Acknowledge(end);
  for (auto& [oid, table] : tables_) {
    if (!table->dataset) continue;
    if (table->published) table->published->Published();
    table->published.reset();
    const bool changed = std::ranges::any_of(basis.members, [&](const auto& member) {
      return member.dataset == table->dataset->id;
    });
    if (changed) applier_.Tidy(*table->dataset, tx_);
  }
  if (end >= limits_.one_by_one_until) progress_->SetFailure(std::nullopt);
}

// Nothing is missing up to here, and nothing was committed that has not been received.
void MirrorStream::NoteReceipt(const source::ChangeStream::Chunk::Keepalive& keepalive) {
  newest_received_ = std::max(newest_received_, keepalive.wal_end);
  received_ = std::max(received_, keepalive.wal_end);
  const Timestamp known(keepalive.sent_at.postgres_us() - kKeepaliveMarginUs);
  received_time_ = std::max(received_time_, known);
  last_source_time_ = std::max(last_source_time_, received_time_);
}

// Everything received is stored, so the source's log up to here is of no more use to us.
void MirrorStream::OnKeepalive(const source::ChangeStream::Chunk::Keepalive& keepalive) {
  const auto now = Deadline::Clock::now();
  if (now - last_stored_receipt_ <
      (keepalive.wal_end > received_ ? kProgressInterval : kReceiptInterval)) {
    return;
  }
  last_stored_receipt_ = now;
  NoteReceipt(keepalive);
  temporal::StoreReceived(*store_, *lease_, journal_->id, received_, received_time_);
  stream_->Acknowledge(received_);
}

}  // namespace tidemark::capture
