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
// Below it, to hand a batch over takes longer than is gained: half a millisecond at 1,000 commits/s.
constexpr size_t kHandedOverChanges = 100;

Timestamp Now() { return Timestamp::FromSystem(std::chrono::system_clock::now()); }

}  // namespace

bool MirrorStream::BatchFull() const {
  return changes_ >= options_.batch_changes || bytes_ >= limits_.batch_bytes_max ||
         commits_.size() >= options_.batch_changes;
}

// The transaction that fills the batch is too large for it, and applied in parts.
bool MirrorStream::BatchOverflows() const {
  return changes_ >= 2 * options_.batch_changes || bytes_ >= 2 * limits_.batch_bytes_max;
}

// A part of a drain: all but the newest commit, which says where the journal stands.
void MirrorStream::StoreDrained() {
  ApplyPending();
  const auto newest = commits_.back();
  commits_.pop_back();
  temporal::StoreCommits(Store(), journal_->id, commits_);
  commits_.assign(1, newest);
}

void MirrorStream::OpenStoreTransaction() {
  if (open_ || draining_) return;
  open_.emplace(Store());
}

// What a basis says of the table's pending changes.
void MirrorStream::CountPending(Table& table) {
  table.puts += table.transition->puts();
  table.deletions += table.transition->deletions();
  table.rows_added += table.transition->rows_added();
}

void MirrorStream::ApplyTable(Table& table) {
  CountPending(table);
  if (table.transition->empty()) return;
  OpenStoreTransaction();
  at_work_ = &table;
  Writer().Apply(*table.transition);
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

// Publishes everything that was received, on the publishing thread where that pays. What this thread
// knows of the store is from then on what will be there: if it fails, the stream ends.
void MirrorStream::PublishPending() {
  at_work_ = nullptr;
  FinishPublishing();
  const Lsn end = commits_.back().end_lsn;
  leaving_.emplace();
  // More than rows of whole transactions: parts, columns, tables that were read whole. Others may
  // wait for the locks and the readings that it gives back.
  const bool plain = !open_;
  const bool handed_over =
      plain && changes_ >= kHandedOverChanges && end > limits_.one_by_one_until;
  if (open_) {
    leaving_->open.emplace(std::move(*open_));
    open_.reset();
  }
  for (auto& [oid, table] : tables_) {
    if (!table->dataset) continue;
    if (!table->transition->empty()) {
      CountPending(*table);
      std::swap(table->transition, table->leaving);
      leaving_->tables.push_back(table.get());
    }
    if (table->changed) leaving_->changed.push_back(table.get());
  }
  leaving_->tx_next = tx_;
  leaving_->basis = {.journal = journal_->id,
                     .capture = std::exchange(capture_, std::nullopt),
                     .commits = std::move(commits_),
                     .members = TakeMembers(),
                     .received = end,
                     .received_time = last_source_time_,
                     .extracted_from = extracted_from_,
                     .extracted_to = Now()};
  commits_.clear();
  changes_ = bytes_ = applied_ = 0;
  reshaped_ = false;
  stored_ = end;
  received_ = std::max(received_, end);
  received_time_ = last_source_time_;
  if (handed_over) {
    publishing_.Start([this] { PublishBatch(); }, [this] { stream_->Wake(); });
    return;
  }
  try {
    PublishBatch();
  } catch (...) {
    NoteFailedPublish();
    throw;
  }
  FinishPublishing();
}

// On whichever thread.
void MirrorStream::PublishBatch() {
  auto open = std::exchange(leaving_->open, std::nullopt);
  if (!open) open.emplace(*store_);
  for (Table* table : leaving_->tables) {
    leaving_->at_work = table;
    applier_.Apply(*table->leaving);
  }
  leaving_->at_work = nullptr;
  temporal::Publish(std::move(*open), *lease_, leaving_->basis);
  stream_->Acknowledge(leaving_->basis.received);
  for (const Table* table : leaving_->changed) applier_.Tidy(*table->dataset, leaving_->tx_next);
}

void MirrorStream::NoteFailedPublish() {
  publish_failed_ = true;
  at_work_ = leaving_->at_work;
  leaving_.reset();
}

// Until what was handed over is in the store. Throws why it is not.
void MirrorStream::FinishPublishing() {
  if (!leaving_) return;
  try {
    publishing_.Wait();
  } catch (...) {
    NoteFailedPublish();
    throw;
  }
  const Lsn end = leaving_->basis.received;
  leaving_.reset();
  for (auto& [oid, table] : tables_) {
    if (table->dataset && table->published) table->published->Published();
    if (table->dataset) table->published.reset();
  }
  if (end >= limits_.one_by_one_until) progress_->SetFailure(std::nullopt);
}

pg::Connection& MirrorStream::Store() {
  FinishPublishing();
  return *store_;
}

temporal::Applier& MirrorStream::Writer() {
  FinishPublishing();
  return applier_;
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
  FinishPublishing();
  NoteReceipt(keepalive);
  temporal::StoreReceived(Store(), *lease_, journal_->id, received_, received_time_);
  stream_->Acknowledge(received_);
}

}  // namespace tidemark::capture
