// Following a mirror's change stream: decode, gather per dataset, apply, publish, acknowledge.
// Every upstream commit keeps a tx of its own; many are published in one basis: as soon as the
// stream pauses, or when the batch is full. The position to resume from is in the same store
// transaction as the rows, and only its commit lets the slot move.
//
//   chunk ──► Begin … changes … Commit ──► (batch full or stream paused) ──► apply ──► publish
//                       │ very large transaction: applied in parts, published at its Commit
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/journal.h"
#include "capture/progress.h"
#include "pg/connection.h"
#include "source/postgres/change_stream.h"
#include "temporal/apply.h"
#include "temporal/dataset.h"
#include "temporal/lease.h"
#include "temporal/publish.h"
#include "temporal/transition.h"
#include "temporal/types.h"
#include "wire/pgoutput.h"

namespace tidemark::capture {

struct StreamLimits {
  size_t batch_changes_max = 20'000;
  size_t batch_bytes_max = 32 << 20;
  /// Apply each change and publish each upstream commit by itself, so that one that cannot be
  /// applied is named and everything before it is readable. For commits that begin before it.
  base::Lsn one_by_one_until;
  temporal::HistoryLimits history;
};

class MirrorStream {
 public:
  MirrorStream(pg::Connection& store, const temporal::Lease& lease, const Journal& journal,
               const temporal::Resume& resume, std::vector<temporal::Dataset> datasets,
               const temporal::TypeMap& types, Progress& progress, StreamLimits limits);
  ~MirrorStream();

  /// Follows until stopped; throws what ends it. What was published before stays published.
  void Run(source::ChangeStream& stream, std::stop_token stop);
  /// Beyond the beginning of the newest commit that was received, published or not.
  base::Lsn newest_received() const { return newest_received_; }

 private:
  using Decoder = wire::pgoutput::Decoder;
  struct Table;

  void Take(const source::ChangeStream::Chunk& chunk);
  void OnMessage(std::string_view payload);
  void OnRelation(const wire::pgoutput::Relation& relation);
  void OnBegin(const wire::pgoutput::Begin& begin);
  void OnCommit(const wire::pgoutput::Commit& commit);
  void OnTruncate(const wire::pgoutput::Truncate& truncate);
  void OnKeepalive(const source::ChangeStream::Chunk::Keepalive& keepalive);
  Table* Touch(wire::pgoutput::RelationOid relation);
  void NoteChange(size_t bytes);
  bool BatchFull() const;
  void OpenStoreTransaction();
  void ApplyPending();
  void ApplyTable(Table& table);
  void PublishPending();
  base::Timestamp SourceTimeOf(base::Timestamp committed_at) const;

  pg::Connection* store_;
  const temporal::Lease* lease_;
  const Journal* journal_;
  Progress* progress_;
  StreamLimits limits_;
  source::ChangeStream* stream_ = nullptr;
  Decoder decoder_;
  std::vector<temporal::Dataset> datasets_;
  temporal::Applier applier_;
  std::map<wire::pgoutput::RelationOid, std::unique_ptr<Table>> tables_;

  // The transaction being received.
  bool in_transaction_ = false, skipping_ = false, touched_ = false;
  wire::pgoutput::Begin begin_{};
  std::string origin_;
  int64_t tx_;  // its number, or the next one's

  // The batch: complete transactions that are not yet published.
  std::vector<temporal::UpstreamCommit> commits_;
  std::optional<pg::Transaction> open_;
  size_t changes_ = 0, bytes_ = 0;  // gathered and not yet applied
  size_t applied_ = 0;              // changes applied in parts and not yet published
  base::Timestamp extracted_from_;

  base::Lsn stored_;              // the end of the newest published commit
  base::Lsn received_;            // nothing up to here is missing from the store
  base::Lsn newest_received_;
  base::Timestamp received_time_;  // stored: source times up to it may have been asked for
  base::Timestamp last_source_time_;
  base::Deadline::Clock::time_point last_stored_receipt_{};
};

}  // namespace tidemark::capture
