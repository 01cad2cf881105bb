// One table of a followed mirror, read whole again beside the stream, on a thread with connections
// of its own: a temporary slot gives the snapshot and its place in the log, and so waits for every
// transaction that began before; the rows go to a private stage, or, of a table that is new here,
// into a current table that is not attached yet. Nothing is visible; mirror_stream.cc compares,
// attaches and publishes, once the stream has come as far as the snapshot.
//
//   running ──► ready (Take)
//      └──────► failed (error); what was written is dropped
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/lsn.h"
#include "capture/mirror_options.h"
#include "pg/relation.h"
#include "source/postgres/table_state.h"
#include "temporal/dataset.h"
#include "temporal/stage.h"
#include "temporal/types.h"

namespace tidemark::capture {

class TableSync {
 public:
  struct Request {
    MirrorOptions options;
    int journal = 0;
    pg::Oid table = 0;  // at the source
    /// As it is kept; nullopt for a table that is new here.
    std::optional<temporal::Dataset> known;
  };
  struct Copied {
    int64_t capture = 0;
    base::Lsn consistent_point;
    temporal::Dataset dataset;  // in its new shape; `id` is the known one's, or newly registered
    pg::Relation relation;
    temporal::TypeMap types;
    std::optional<temporal::Stage> stage;  // of a known table
    int64_t rows = 0;
    base::Timestamp extracted_from, extracted_to;
  };

  TableSync(pg::Connection& store, Request request);
  /// Stops; drops what was written, unless it has been taken.
  ~TableSync();

  /// Whether it has ended, well or not.
  bool ended() const;
  /// The error it ended with; nullptr while it runs or when it went well.
  std::exception_ptr failure() const;
  /// When it has ended well. Valid until Published().
  const Copied& copied() const { return copied_; }
  /// What was copied is published, and is not dropped any more.
  void Published() { published_ = true; }

 private:
  void Run(const std::stop_token& stop);
  void Copy(pg::Connection& source, pg::Connection& store, const std::stop_token& stop);
  void Drop();

  Request request_;
  Copied copied_;
  bool published_ = false;
  mutable std::mutex mutex_;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

/// Undoes what tables of a journal that were being read when their process died have left behind.
void DropDeadTableSyncs(pg::Connection& store, int journal);

}  // namespace tidemark::capture
