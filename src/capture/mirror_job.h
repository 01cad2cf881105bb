// One mirror, from nothing to following: take the lease, look at the source, copy it the first
// time, follow its stream, and begin again after whatever may pass. The only thing that contacts
// the source. Runs on the caller's thread until stopped.
//
//   lease ──► preflight ──► (no resume position?) first copy ──► compare source ──► stream ─┐
//     ▲                                                                                    │
//     └──────────────── wait a little, then again ◄── any failure, kept in status ◄────────┘
#pragma once

#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/lsn.h"
#include "capture/journal.h"
#include "capture/mirror_options.h"
#include "capture/mirror_stream.h"
#include "capture/progress.h"
#include "pg/connection.h"

namespace tidemark::capture {

class MirrorJob {
 public:
  explicit MirrorJob(MirrorOptions options);

  /// Follows until `stop`. Failures that may pass are retried; those of a commit that cannot be
  /// applied are shown in status and retried more slowly. Throws only what no retry can mend
  /// before anything was captured: a source refused by preflight (its first problem's SQLSTATE),
  /// a slot that belongs to somebody else (42710), a store of another version (0A000).
  void Run(std::stop_token stop);

 private:
  void RunOnce(std::stop_token stop);
  void FirstCopyOf(pg::Connection& store, const temporal::Lease& lease, const Journal& journal,
                   Progress& progress, std::stop_token stop);
  void Follow(pg::Connection& store, const temporal::Lease& lease, const Journal& journal,
              Progress& progress, std::stop_token stop);

  void MindFailure(const MirrorStream& mirror, const base::Error& error, std::stop_token stop);
  /// Whether the store refused a NULL that it can be made to take.
  bool TakeNulls(const temporal::Dataset& table, const base::Error& error, std::stop_token stop);
  [[noreturn]] void BeginWithout(const temporal::Dataset& table, const base::Error& error,
                                 std::stop_token stop);

  MirrorOptions options_;
  bool refused_ = false;  // the last failure was one that Run throws
  base::Lsn one_by_one_until_, publish_before_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace tidemark::capture
