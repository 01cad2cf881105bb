// The first copy of a mirror: a slot with its exported snapshot, all tables copied from that
// snapshot in parallel, then attached and published in one transaction. Until that commit nothing
// is visible; cut short anywhere it is undone (here, or by the next start) and begins again.
//
//   nothing ──► capture row "running" (durable) ──► slot ──► rows ──► keys ──► attach + publish
//      ▲                                                                         (durable, one
//      └──────── slot and staged tables dropped, row "abandoned" ◄── failure      transaction)
#pragma once

#include <stop_token>
#include <string>

#include "capture/journal.h"
#include "capture/progress.h"
#include "pg/connection.h"
#include "source/postgres/preflight.h"
#include "temporal/lease.h"

namespace tidemark::capture {

struct FirstCopyOptions {
  std::string source_dsn, store_dsn;
  int workers = 2;
  std::chrono::minutes slot_wait{60};  // for transactions older than the slot
};

class FirstCopy {
 public:
  FirstCopy(FirstCopyOptions options, pg::Connection& store, const temporal::Lease& lease,
            Journal journal, Progress& progress);

  /// Removes what an earlier copy left behind in store and source. Throws 42710 when the slot
  /// belongs to somebody else, 55006 when it is active.
  void CleanUp(std::stop_token stop);
  /// Copies and publishes the report's tables. Throws what made it fail, after undoing it.
  void Run(const source::PreflightReport& report, std::stop_token stop);

 private:
  struct Work;
  void MakeSlot(Work& work, std::stop_token stop);
  void Prepare(Work& work, const source::PreflightReport& report);
  void CopyRows(Work& work, std::stop_token stop);
  void BuildKeys(Work& work, std::stop_token stop);
  void AttachAndPublish(Work& work);
  void Abandon(int64_t capture, const std::string& slot, const std::string& reason);
  void DropStaged(pg::Connection& store);

  FirstCopyOptions options_;
  pg::Connection* store_;
  const temporal::Lease* lease_;
  Journal journal_;
  Progress* progress_;
};

}  // namespace tidemark::capture
