// The first copy of a mirror: a slot with its exported snapshot, all tables copied from that
// snapshot in parallel, then attached and published in one transaction. Until that commit nothing
// is visible; cut short anywhere it is undone (here, or by the next start) and begins again.
//
//   nothing ──► capture row "running" (durable) ──► slot ──► rows ──► keys ──► attach + publish
//      ▲                                                                         (durable, one
//      └──────── slot and staged tables dropped, row "abandoned" ◄── failure      transaction)
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "capture/journal.h"
#include "capture/mirror_options.h"
#include "capture/progress.h"
#include "pg/connection.h"
#include "source/postgres/preflight.h"
#include "temporal/capture_publish.h"
#include "temporal/lease.h"

namespace tidemark::capture {

class FirstCopy {
 public:
  FirstCopy(const MirrorOptions& options, pg::Connection& store, const temporal::Lease& lease,
            Journal journal, Progress& progress);
  ~FirstCopy();
  FirstCopy(FirstCopy&&) noexcept;

  /// Removes what an earlier copy left behind in store and source. Throws 42710 when the slot
  /// belongs to somebody else, 55006 when it is active.
  void CleanUp(std::stop_token stop);
  /// Copies and publishes the report's tables. Throws what made it fail, after undoing it.
  void Run(const source::PreflightReport& report, std::stop_token stop);

  /// The same in steps, for a publish together with others. Copies; throws what made it fail, after
  /// undoing it.
  void Copy(const source::PreflightReport& report, std::stop_token stop);
  /// Attaches what was copied, inside the caller's transaction. May be called again after a
  /// rollback.
  temporal::CapturedJournal Attach();
  /// Removes what was copied and not published; what fails is left to the next CleanUp.
  void Undo(const std::string& reason);

 private:
  struct Work;
  void MakeSlot(Work& work, std::stop_token stop);
  void LinkFamilies(const Work& work);
  void Prepare(Work& work, const source::PreflightReport& report);
  void CopyRows(Work& work, std::stop_token stop);
  void BuildKeys(Work& work, std::stop_token stop);
  void Abandon(int64_t capture, const std::string& slot, const std::string& reason);
  void DropStaged(pg::Connection& store);

  MirrorOptions options_;
  pg::Connection* store_;
  const temporal::Lease* lease_;
  Journal journal_;
  Progress* progress_;
  int64_t capture_ = 0;     // its row, until it is undone
  std::unique_ptr<Work> work_;
  bool slot_made_ = false;  // until then a slot of that name would be somebody else's
};

}  // namespace tidemark::capture
