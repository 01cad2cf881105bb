// How far back every snapshot of the store sees everything (tidemark.journal.tx_seen_by_all). Queries AS
// OF an instant before that are planned without a check of their own. docs/design/0015-reading-the-past.md.
#pragma once

#include <map>
#include <string>

#include "pg/connection.h"

namespace tidemark::temporal {

/// Not thread-safe.
class SnapshotHorizon {
 public:
  /// Moves on to what was published when a call before found something newer, once all snapshots
  /// and transactions of that time have ended. Waits for none of them. Uses transactions of its own.
  void Advance(pg::Connection& store);

 private:
  void LookForNewer(pg::Connection& store);
  bool Passed(pg::Connection& store);

  std::string transaction_;                   // began when all of newer_ had been published
  std::map<std::string, std::string> newer_;  // the newest tx by journal
};

}  // namespace tidemark::temporal
