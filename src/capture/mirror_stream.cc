#include "capture/mirror_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/mirrored_table.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using base::Lsn;
using base::Timestamp;
namespace pgoutput = wire::pgoutput;

namespace {

constexpr std::chrono::milliseconds kIdleWait{500};

Timestamp Now() { return Timestamp::FromSystem(std::chrono::system_clock::now()); }

}  // namespace

MirrorStream::MirrorStream(pg::Connection& store, const temporal::Lease& lease,
                           const Journal& journal, const temporal::Resume& resume,
                           FollowedTables tables, Progress& progress,
                           const MirrorOptions& options, StreamLimits limits)
    : store_(&store),
      lease_(&lease),
      journal_(&journal),
      progress_(&progress),
      limits_(limits),
      options_(options),
      applier_(store, limits.history),
      tx_(resume.tx_last + 1),
      stored_(resume.lsn),
      received_(resume.received),
      newest_received_(resume.received),
      received_time_(resume.received_time),
      last_source_time_(resume.received_time) {
  const auto types = std::make_shared<const temporal::TypeMap>(std::move(tables.types));
  for (auto& dataset : tables.datasets) {
    if (!dataset.attached) continue;
    auto table = std::make_unique<Table>();
    const auto oid = dataset.source_oid;
    table->Keep(std::move(dataset), types);
    tables_.emplace(oid, std::move(table));
  }
}

MirrorStream::~MirrorStream() = default;

const temporal::Dataset* MirrorStream::at_work() const {
  return at_work_ == nullptr ? nullptr : at_work_->dataset.get();
}

void MirrorStream::Run(source::ChangeStream& stream, std::stop_token stop) {
  stream_ = &stream;
  try {
    Begin(LookAtSource(Source(), Side(), journal_->publication, journal_->id));
    Follow(stream, std::move(stop));
  } catch (const Error& error) {
    // Commits that came before it are on their way to the store. That they fail is the first thing
    // that went wrong.
    try {
      FinishPublishing();
    } catch (const Error&) {
      spdlog::warn("after what was to be published: {}", error.Full());
      throw;
    }
    throw;
  }
}

void MirrorStream::Follow(source::ChangeStream& stream, std::stop_token stop) {
  SourceWatch watch(options_, journal_->id);
  for (;;) {
    const auto chunk = stream.Next(Deadline::After(kIdleWait), stop);
    if (chunk) Take(*chunk);
    progress_->SetSource(stream.source_lsn());
    const bool busy = publishing_.busy();  // meanwhile the next batch grows
    if (!busy) FinishPublishing();
    if (in_transaction_ || streamed_.in_block()) continue;
    if (!commits_.empty() && !busy && stream.Paused()) PublishPending();
    if (chunk && chunk->keepalive && commits_.empty()) OnKeepalive(*chunk->keepalive);
    if (!view_) view_ = watch.Take();
    if (view_ && commits_.empty() && ReceivedEnd() >= view_->seen_at) {
      FinishPublishing();
      if (view_->began > newest_sync_) OnView(*view_);  // else it says what has been done already
      view_.reset();
    }
    if (AnyWaiting()) {
      FinishPublishing();
      FinishSyncs();
    }
    if (commits_.empty() && AnyLook()) {
      FinishPublishing();
      FollowLooks();
    }
  }
}

temporal::CapturedJournal MirrorStream::Drain(source::ChangeStream& stream, Lsn target,
                                              std::stop_token stop) {
  stream_ = &stream;
  draining_ = true;
  const Timestamp began = Now();
  const auto view = LookAtSource(Source(), Side(), journal_->publication, journal_->id);
  Begin(view);
  bool looked = false;
  // Commits come in order: one that ends beyond the target is preceded by all that are before it.
  for (;;) {
    const bool reached = !in_transaction_ && !streamed_.in_block() && ReceivedEnd() >= target;
    if (reached && !looked) {
      OnView(view);
      looked = true;
    }
    if (reached && AnyWaiting()) FinishSyncs();
    if (reached && AnyLook()) FollowLooks();
    if (reached && !AnyWaiting() && !AnyLook()) break;
    const auto chunk = stream.Next(Deadline::After(kIdleWait), stop);
    progress_->SetSource(stream.source_lsn());
    if (!chunk) continue;
    Take(*chunk);
    if (chunk->keepalive && !in_transaction_) NoteReceipt(*chunk->keepalive);
  }
  ApplyPending();
  TellOfTables();
  Writer().RestorePlanner();
  temporal::CapturedJournal drained{.journal = journal_->id,
                                    .lease = lease_,
                                    .capture = std::nullopt,
                                    .commits = std::move(commits_),
                                    .tx_last = tx_ - 1,
                                    .position = stored_,
                                    .received = received_,
                                    .received_time = last_source_time_,
                                    .members = TakeMembers(),
                                    .unchanged = {},
                                    .extracted_from = began,
                                    .extracted_to = Now()};
  commits_.clear();
  if (!drained.commits.empty()) drained.position = drained.commits.back().end_lsn;
  drained.received = std::max(received_, drained.position);
  for (const auto& [oid, table] : tables_) {
    if (!table->dataset) continue;
    const int id = table->dataset->id;
    const bool changed = std::ranges::any_of(
        drained.members, [&](const auto& member) { return member.dataset == id; });
    if (changed) {
      drained_.insert(id);
    } else {
      drained.unchanged.push_back(id);
    }
  }
  received_ = drained.received;
  stored_ = drained.position;
  return drained;
}

void MirrorStream::Settle(source::ChangeStream& stream) {
  stream.Acknowledge(received_);
  for (auto& [oid, table] : tables_) {
    if (!table->dataset) continue;
    if (table->published) table->published->Published();
    table->published.reset();
    if (drained_.contains(table->dataset->id)) Writer().Tidy(*table->dataset, tx_);
  }
}

void MirrorStream::Take(const source::ChangeStream::Chunk& chunk) {
  source::ChunkReader messages(chunk);
  while (const auto payload = messages.Next()) {
    try {
      OnMessage(*payload);
      at_work_ = nullptr;
    } catch (Error& error) {
      if (in_transaction_ && !publish_failed_) {
        error.AddContext(fmt::format("in the source's transaction {} that commits at {}",
                                     begin_.xid, begin_.commit_lsn.ToString()));
      }
      throw;
    }
  }
}

void MirrorStream::OnMessage(std::string_view payload) {
  if (streamed_.Take(payload)) return;
  const auto message = decoder_.Decode(payload);
  if (const auto* begin = std::get_if<pgoutput::Begin>(&message)) return OnBegin(*begin);
  if (const auto* commit = std::get_if<pgoutput::Commit>(&message)) return OnCommit(*commit);
  if (const auto* relation = std::get_if<pgoutput::Relation>(&message)) {
    if (!Wait(relation->oid, payload)) OnRelation(*relation);
    return;
  }
  if (const auto* origin = std::get_if<pgoutput::Origin>(&message)) {
    origin_ = origin->name;
    return;
  }
  if (OnStreaming(message)) return;
  if (skipping_ || std::holds_alternative<pgoutput::Type>(message) ||
      std::holds_alternative<pgoutput::LogicalMessage>(message)) {
    return;
  }
  if (const auto* insert = std::get_if<pgoutput::Insert>(&message)) {
    if (Wait(insert->relation, payload)) return;
    if (Table* table = Touch(insert->relation)) {
      table->transition->Insert(tx_, table->Arranged(insert->new_tuple, new_fields_));
      NoteChange(payload.size());
    }
  } else if (const auto* update = std::get_if<pgoutput::Update>(&message)) {
    if (Wait(update->relation, payload)) return;
    if (Table* table = Touch(update->relation)) {
      table->transition->Update(tx_, update->old_kind,
                                table->Arranged(update->old_tuple, old_fields_),
                                table->Arranged(update->new_tuple, new_fields_));
      NoteChange(payload.size());
    }
  } else if (const auto* removal = std::get_if<pgoutput::Delete>(&message)) {
    if (Wait(removal->relation, payload)) return;
    if (Table* table = Touch(removal->relation)) {
      table->transition->Delete(tx_, removal->old_kind,
                                table->Arranged(removal->old_tuple, old_fields_));
      NoteChange(payload.size());
    }
  } else if (const auto* truncate = std::get_if<pgoutput::Truncate>(&message)) {
    for (const auto relation : truncate->relations) {
      if (!Wait(relation, payload)) Truncate(relation);
    }
  } else {
    throw Error(base::kProtocolViolation, "the source sent a message that was not asked for");
  }
}

// Whether the message was one about transactions that are sent while they run.
bool MirrorStream::OnStreaming(const pgoutput::Message& message) {
  if (const auto* start = std::get_if<pgoutput::StreamStart>(&message)) {
    streamed_.Start(start->xid);
  } else if (std::holds_alternative<pgoutput::StreamStop>(message)) {
    streamed_.Stop();
    base::KillPoint("stream.block");
  } else if (const auto* abort = std::get_if<pgoutput::StreamAbort>(&message)) {
    streamed_.Abort(abort->xid, abort->subxid);
  } else if (const auto* commit = std::get_if<pgoutput::StreamCommit>(&message)) {
    OnStreamCommit(*commit);
  } else {
    return false;
  }
  return true;
}

// As if all of it came now, between a Begin and a Commit.
void MirrorStream::OnStreamCommit(const pgoutput::StreamCommit& commit) {
  const auto changes = streamed_.Commit(commit.xid);
  OnBegin({commit.commit_lsn, commit.committed_at, commit.xid});
  while (const auto change = changes->Next()) {
    if (!change->rolled_back) {
      OnMessage(change->payload);
      continue;
    }
    const auto message = decoder_.Decode(change->payload);
    if (const auto* relation = std::get_if<pgoutput::Relation>(&message)) {
      rolled_back_relations_.insert_or_assign(relation->oid, std::string(change->payload));
    }
  }
  base::KillPoint("stream.replayed");
  OnCommit({commit.commit_lsn, commit.end_lsn, commit.committed_at});
}

// A change comes for which the source has sent no other description of the table.
void MirrorStream::AnnounceFromRolledBack(pgoutput::RelationOid relation) {
  const auto held = rolled_back_relations_.extract(relation);
  if (held.empty()) return;
  Decoder decoder;  // the change is still in the other one
  const auto message = decoder.Decode(held.mapped());
  OnRelation(std::get<pgoutput::Relation>(message));
}

void MirrorStream::OnBegin(const pgoutput::Begin& begin) {
  if (begin.commit_lsn == limits_.publish_before) {
    if (!commits_.empty()) PublishPending();
    FinishPublishing();
  }
  if (commits_.empty()) extracted_from_ = Now();
  begin_ = begin;
  in_transaction_ = true;
  touched_ = false;
  newest_received_ = std::max(newest_received_, base::Lsn(begin.commit_lsn.value() + 1));
  origin_.clear();
  // Sent again after a restart: its commit record begins before the stored end.
  skipping_ = begin.commit_lsn < stored_;
}

// Non-decreasing within the journal, and beyond every source time that may have been asked for:
// an answer once given must not change.
Timestamp MirrorStream::SourceTimeOf(Timestamp committed_at) const {
  const int64_t beyond_asked = received_time_.postgres_us() + 1;
  return Timestamp(std::max({committed_at.postgres_us(), beyond_asked,
                             last_source_time_.postgres_us()}));
}

void MirrorStream::OnCommit(const pgoutput::Commit& commit) {
  in_transaction_ = false;
  newest_received_ = std::max(newest_received_, commit.end_lsn);
  if (skipping_) {
    skipping_ = false;
    return;
  }
  if (!touched_) {
    // Nothing of it is mirrored: only the position moves.
    if (commits_.empty()) received_ = std::max(received_, commit.end_lsn);
    return;
  }
  const Timestamp source_time = SourceTimeOf(commit.committed_at);
  last_source_time_ = source_time;
  commits_.push_back({.tx = tx_,
                      .end_lsn = commit.end_lsn,
                      .xid = begin_.xid,
                      .source_time = source_time,
                      .commit_time = source_time == commit.committed_at
                                         ? std::nullopt
                                         : std::optional(commit.committed_at),
                      .origin = origin_});
  ++tx_;
  if (draining_) {
    if (BatchFull()) StoreDrained();
    return;
  }
  if (BatchFull() || applied_ > 0 || reshaped_ || commit.end_lsn <= limits_.one_by_one_until) {
    PublishPending();
  }
}

// Changes of a table that is being read whole wait until it has been.
bool MirrorStream::Wait(pgoutput::RelationOid relation, std::string_view payload) {
  const auto found = tables_.find(relation);
  if (found == tables_.end() || !found->second->waiting) return false;
  found->second->waiting->Write({begin_.commit_lsn, begin_.xid, payload});
  return true;
}

void MirrorStream::OnRelation(const pgoutput::Relation& relation) {
  FinishPublishing();
  rolled_back_relations_.erase(relation.oid);
  const auto found = tables_.find(relation.oid);
  if (found == tables_.end()) {  // published, but not mirrored yet
    announced_elsewhere_.insert(relation.oid);
    return;
  }
  Table& table = *found->second;
  const temporal::Dataset& dataset = *table.dataset;
  if (skipping_) {  // what the store has is this shape, or a newer one
    table.announced = true;
    return NoteIdentity(table, relation);
  }
  const base::QualifiedName name{std::string(relation.schema), std::string(relation.name)};
  if (!options_.only && name != dataset.name) {
    FollowNames(source::LoadTableStates(Source(), journal_->publication));
  }
  const auto& columns = dataset.columns;
  bool fits = relation.columns.size() == columns.size();
  for (size_t i = 0; fits && i < columns.size(); ++i) {
    const auto& announced = relation.columns[table.PlaceOf(i)];
    fits = announced.name == columns[i].name && announced.type == columns[i].source_type;
  }
  if (fits && dataset.keying == temporal::Keying::kKey) {
    for (size_t at : dataset.KeyPositions()) {
      fits = fits && relation.columns[table.PlaceOf(at)].key;
    }
  }
  table.announced = true;
  table.announced_by = begin_.xid;
  at_work_ = &table;
  if (!fits) FollowShape(table, relation);
  NoteIdentity(table, relation);
}

// Rows of a multiset can be told apart only under REPLICA IDENTITY FULL.
void MirrorStream::NoteIdentity(Table& table, const pgoutput::Relation& relation) {
  if (!table.waiting && table.dataset->keying == temporal::Keying::kMultiset) {
    table.announced = relation.identity == pgoutput::ReplicaIdentity::kFull;
  }
}

MirrorStream::Table* MirrorStream::Touch(pgoutput::RelationOid relation) {
  const auto found = tables_.find(relation);
  if (found == tables_.end()) return nullptr;
  if (!in_transaction_) {
    throw Error(base::kProtocolViolation, "the source sent a change outside a transaction");
  }
  Table& table = *found->second;
  if (table.waiting) return nullptr;
  at_work_ = &table;
  if (!rolled_back_relations_.empty()) AnnounceFromRolledBack(relation);
  if (!table.announced) {
    throw Error(base::kFeatureNotSupported,
                fmt::format("the identity of {} has changed at the source: its rows cannot be told "
                            "apart any more",
                            table.dataset->name.Display()))
        .Detail("Everything before that commit is mirrored and stays readable.")
        .Hint("Give the table a primary key, or REPLICA IDENTITY FULL, and run \"tidemark resync\".");
  }
  touched_ = true;
  table.changed = true;
  return &table;
}

void MirrorStream::NoteChange(size_t bytes) {
  ++changes_;
  bytes_ += bytes;
  // Nothing of what is applied in parts shows before its commit. While a change that the store
  // refused is looked for, each is a part of its own.
  if (BatchOverflows() || begin_.commit_lsn < limits_.one_by_one_until) ApplyPending();
}

void MirrorStream::Truncate(pgoutput::RelationOid relation) {
  Table* table = Touch(relation);
  if (table == nullptr) return;
  ApplyTable(*table);
  table->truncated_by.insert(begin_.xid);
  OpenStoreTransaction();
  at_work_ = table;
  const int64_t rows = Writer().Truncate(*table->dataset, tx_);
  table->deletions += rows;
  table->rows_added -= rows;
}

}  // namespace tidemark::capture
