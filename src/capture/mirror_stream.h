// Following a mirror's change stream: decode, gather per dataset, apply, publish, acknowledge.
// Every upstream commit keeps a tx of its own; many are published in one basis: as soon as the
// stream pauses, or when the batch is full. The position to resume from is in the same store
// transaction as the rows, and only its commit lets the slot move.
//
//   chunk ──► Begin … changes … Commit ──► (batch full or stream paused) ──► apply ──► publish
//   └───────────── this thread, into the next batch ─────────────┘   └─ publishing thread ─┘
//     │                 │ very large transaction: applied in parts, published at its Commit
//     └──► block of one that still runs: waits (streamed_transactions.h) ──► StreamCommit: as above
//
// A table whose rows may have changed unseen, or that came later, is read whole beside the stream
// (table_sync.h). Meanwhile its changes wait in a file:
//
//   followed ──► syncing ──► (read, and the stream has come as far) ──► compared or attached, then
//      ▲            │ failed: again, later                              what has waited is applied
//      └────────────┴──────────────────────────── published ◄───────────────┘
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/journal.h"
#include "capture/mirror_options.h"
#include "capture/mirror_source.h"
#include "capture/progress.h"
#include "capture/publishing_thread.h"
#include "capture/source_watch.h"
#include "capture/streamed_transactions.h"
#include "pg/connection.h"
#include "source/postgres/change_stream.h"
#include "temporal/apply.h"
#include "temporal/capture_publish.h"
#include "temporal/dataset.h"
#include "temporal/inheritance.h"
#include "temporal/lease.h"
#include "temporal/publish.h"
#include "temporal/reshape.h"
#include "temporal/transition.h"
#include "wire/pgoutput.h"

namespace tidemark::capture {

struct StreamLimits {
  /// Of a batch that is full; the transaction that fills it may double it. Two are held: one leaves
  /// while the next one grows.
  size_t batch_bytes_max = 16 << 20;
  /// Apply each change and publish each upstream commit by itself, so that one that cannot be
  /// applied is named and everything before it is readable. For commits that begin before it.
  base::Lsn one_by_one_until;
  /// The transaction whose commit record is there begins only once all before it is published: it
  /// makes a table be read whole again, and nothing from before it shall wait for that.
  base::Lsn publish_before;
  temporal::HistoryLimits history;
};

class MirrorStream {
 public:
  MirrorStream(pg::Connection& store, const temporal::Lease& lease, const Journal& journal,
               const temporal::Resume& resume, FollowedTables tables, Progress& progress,
               const MirrorOptions& options, StreamLimits limits);
  ~MirrorStream();

  /// Follows until stopped; throws what ends it. What was published before stays published.
  void Run(source::ChangeStream& stream, std::stop_token stop);

  /// Receives all that is before `target` and applies it inside the transaction that the caller has
  /// begun on the store's connection and will end. Returns what is to be published with it; the
  /// stream is not acknowledged. Memory: O(a batch), however much there is.
  temporal::CapturedJournal Drain(source::ChangeStream& stream, base::Lsn target,
                                  std::stop_token stop);
  /// After the commit of what Drain gave.
  void Settle(source::ChangeStream& stream);
  /// Beyond the beginning of the newest commit that was received, published or not.
  base::Lsn newest_received() const { return newest_received_; }
  /// After Run has thrown: the transaction before which the next run is to publish, if there is
  /// one.
  base::Lsn publish_first() const { return publish_first_; }
  /// After Run has thrown: the table whose changes it was about; nullptr when it was about none.
  const temporal::Dataset* at_work() const;

 private:
  using Decoder = wire::pgoutput::Decoder;
  struct Table;
  struct FamilyChange;
  using Tables = std::map<wire::pgoutput::RelationOid, std::unique_ptr<Table>>;
  /// A published table that cannot be mirrored as it is.
  struct LeftOut {
    std::string state;
    Complaint complaint;
    base::Deadline again;
  };

  void Follow(source::ChangeStream& stream, std::stop_token stop);
  void Take(const source::ChangeStream::Chunk& chunk);
  void OnMessage(std::string_view payload);
  void OnRelation(const wire::pgoutput::Relation& relation);
  static void NoteIdentity(Table& table, const wire::pgoutput::Relation& relation);
  void OnBegin(const wire::pgoutput::Begin& begin);
  void OnCommit(const wire::pgoutput::Commit& commit);
  void OnStreamCommit(const wire::pgoutput::StreamCommit& commit);
  bool OnStreaming(const wire::pgoutput::Message& message);
  void AnnounceFromRolledBack(wire::pgoutput::RelationOid relation);
  void Truncate(wire::pgoutput::RelationOid relation);
  void OnKeepalive(const source::ChangeStream::Chunk::Keepalive& keepalive);
  bool Wait(wire::pgoutput::RelationOid relation, std::string_view payload);
  Table* Touch(wire::pgoutput::RelationOid relation);
  void NoteChange(size_t bytes);
  bool BatchFull() const;
  bool BatchOverflows() const;
  void NoteReceipt(const source::ChangeStream::Chunk::Keepalive& keepalive);
  void OpenStoreTransaction();
  void ApplyPending();
  void ApplyTable(Table& table);
  void StoreDrained();
  void PublishPending();
  void PublishBatch();
  void FinishPublishing();
  void NoteFailedPublish();
  void CountPending(Table& table);
  /// The store and what writes to it, once the publishing thread has done with them.
  pg::Connection& Store();
  temporal::Applier& Writer();
  std::vector<temporal::Member> TakeMembers();
  base::Timestamp SourceTimeOf(base::Timestamp committed_at) const;

  pg::Connection& Source();
  pg::Connection& Side();
  // mirror_shape.cc
  [[noreturn]] void BeginAgainFor(Table& table, const std::string& reason);
  void AwaitSeen();
  void FollowShape(Table& table, const wire::pgoutput::Relation& relation);
  void FollowColumns(Table& table, const wire::pgoutput::Relation& announced,
                     const std::vector<int>& numbers, const source::TableColumns& catalog);
  void Look(wire::pgoutput::RelationOid oid, Table& table, const std::string& state);
  bool AnyLook() const;
  void FollowLooks();
  bool FollowLook(wire::pgoutput::RelationOid oid, Table& table,
                  const source::SeenColumns& seen);
  static std::vector<std::string> KeyNow(const temporal::Dataset& dataset,
                                         const temporal::NumberedShape& now,
                                         const std::vector<std::string>& announced,
                                         wire::pgoutput::ReplicaIdentity identity);
  void FollowNames(const std::vector<source::TableState>& states);
  // mirror_sync.cc
  bool AllAsked(const SourceView& view) const;
  void AllowNulls(const SourceView& view);
  void FollowNulls(Table& table, const source::TableState& state);
  void Begin(const SourceView& view);
  void OnView(const SourceView& view);
  bool IsMirrored(const source::TableState& state) const;
  base::QualifiedName NameInStore(const source::TableState& state) const;
  static bool IsPublished(const SourceView& view, wire::pgoutput::RelationOid oid);
  Tables::iterator Rekey(Tables::iterator at, wire::pgoutput::RelationOid oid);
  Tables::iterator AdoptNewTable(const SourceView& view, const source::TableState& state);
  void StartSync(wire::pgoutput::RelationOid oid, Table& table, const std::string& reason);
  bool MayRead() const;
  void MindFailedSyncs();
  void NoteFailedSync(Tables::iterator at, const base::Error& error);
  bool TryReplace(Table& table);
  void TellOfTables();
  bool IsAwaited(const Table& table) const;
  bool AnyWaiting() const;
  base::Lsn ReceivedEnd() const;
  bool IsReady(const Table& table) const;
  void AddOwnCommit();
  void FinishSyncs();
  void Replace(Table& table);
  int64_t Reshape(temporal::Dataset& dataset, temporal::NumberedShape shape);
  bool Replay(Table& table);
  // mirror_family.cc
  using Links = std::vector<temporal::InheritanceLink>;
  source::Families FamiliesHere(const std::vector<source::InheritedTable>& inheritance) const;
  Links LinksOf(const source::Families& families) const;
  Table* TableOf(int dataset) const;
  void NotePublished(const SourceView& view);
  void FollowInheritance(const SourceView& view, std::vector<Complaint>& complaints);
  void ChangeLinksTo(const Links& wanted);
  void RetryLinks();
  bool TryChangeLinks(const Links& wanted);
  bool ChangeLinks(const Links& ended, const Links& begun);
  void MendLinks(Table* changed = nullptr, const temporal::Dataset* before = nullptr);
  void MendBy(const Links& wanted, Table* changed, const temporal::Dataset* before);
  void FollowRelatives(Table& changed, const temporal::Dataset& before);
  void FollowRelative(Table& table, const FamilyChange& change);
  void FollowCatalog(Table& table);
  void JoinFamilies();
  bool WaitsForFamily(const Table& table) const;

  pg::Connection* store_;
  const temporal::Lease* lease_;
  const Journal* journal_;
  Progress* progress_;
  StreamLimits limits_;
  source::ChangeStream* stream_ = nullptr;
  Decoder decoder_;
  std::vector<wire::pgoutput::TupleField> old_fields_, new_fields_;
  MirrorOptions options_;
  temporal::Applier applier_;
  Tables tables_;
  std::map<wire::pgoutput::RelationOid, LeftOut> left_out_;
  std::set<wire::pgoutput::RelationOid> announced_elsewhere_;  // before their tables were known
  Links links_;                               // between datasets, as the store has them
  struct Unlinked {
    std::string reason;
    base::Deadline again;
  };
  std::set<wire::pgoutput::RelationOid> published_;         // in the newest view
  std::map<temporal::InheritanceLink, Unlinked> unlinked_;  // that cannot be made just now
  base::Deadline links_again_ = base::Deadline::After({});  // not before
  bool mending_ = false;
  bool together_ = false;                     // all tables are read whole, and shown at once
  base::Deadline::Clock::time_point newest_sync_{};  // when the newest one was published
  std::vector<Complaint> complaints_;         // of the newest view, about tables
  std::optional<SourceView> view_;            // to be looked at once the stream has come as far
  std::optional<pg::Connection> source_, side_;  // for looking things up; opened when needed
  std::optional<int64_t> capture_;            // the newest sync of the batch

  StreamedTransactions streamed_;
  // Relation messages of subtransactions that were rolled back, while no other one of their table
  // has come: the source may rely on them.
  std::map<wire::pgoutput::RelationOid, std::string> rolled_back_relations_;

  // The transaction being received.
  bool in_transaction_ = false, skipping_ = false, touched_ = false;
  wire::pgoutput::Begin begin_{};
  Table* at_work_ = nullptr;  // whose change is being taken or applied
  std::string origin_;
  int64_t tx_;  // its number, or the next one's

  // The batch: complete transactions that are not yet published.
  std::vector<temporal::UpstreamCommit> commits_;
  std::optional<pg::Transaction> open_;
  bool draining_ = false;                // the transaction is the caller's
  std::set<int> drained_;                // the datasets that a drain has changed
  // A table's columns changed: readers wait for its locks, so that they are given back at once.
  bool reshaped_ = false;
  size_t changes_ = 0, bytes_ = 0;  // gathered and not yet applied
  size_t applied_ = 0;              // changes applied in parts and not yet published
  base::Timestamp extracted_from_;

  base::Lsn stored_;              // the end of the newest published commit
  base::Lsn received_;            // nothing up to here is missing from the store
  base::Lsn newest_received_;
  base::Lsn publish_first_;
  base::Timestamp received_time_;  // stored: source times up to it may have been asked for
  base::Timestamp last_source_time_;
  base::Deadline::Clock::time_point last_stored_receipt_{};

  /// What was received, on its way to the store: the publishing thread's, while it is busy. Nothing
  /// else uses the store's connection meanwhile.
  struct Leaving {
    std::optional<pg::Transaction> open;
    std::vector<Table*> tables;  // whose `leaving` is to be applied
    std::vector<Table*> changed;
    Table* at_work = nullptr;
    temporal::NewBasis basis;
    int64_t tx_next;
  };
  std::optional<Leaving> leaving_;
  bool publish_failed_ = false;
  PublishingThread publishing_;  // last: it ends before what it uses
};

}  // namespace tidemark::capture
