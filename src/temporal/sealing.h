// What happens to closed partitions of history. They are sealed: rewritten so that the rows alive at
// an instant lie together, and swapped in. Sealed neighbours are merged the same way, so that the
// number of partitions grows with the logarithm of the history. docs/design/0004-sealing.md.
//
//     closed ──► rewritten beside it (rewritten_by) ──► frozen ──► swapped in (sealed)
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/history.h"

namespace tidemark::temporal {

/// Not thread-safe; remembers which datasets it has left alone.
class Sealer {
 public:
  explicit Sealer(HistoryLimits limits) : limits_(std::move(limits)) {}

  /// Rewrites several closed or sealed partitions to one (neighbours.h), and swaps it in. The swap
  /// waits until every snapshot that could not see the rewritten rows has ended, and holds readers up
  /// for a moment at most; both are tried again at the next call. Where only a dataset's own users
  /// are in the way, others have their turn meanwhile; one with a partition that cannot be sealed is
  /// warned of and left alone for an hour. False when there is nothing (more) to do now. Uses
  /// transactions of its own; does nothing while another session seals.
  bool SealOne(pg::Connection& store);

 private:
  HistoryLimits limits_;
  std::map<std::string, base::Deadline> refused_;  // datasets
};

/// Before closed versions of the dataset change in place: ends a rewrite that runs, discards one
/// that is not swapped in yet, and keeps others from beginning until the caller's transaction ends.
void DiscardRewritten(pg::Connection& store, const Dataset& dataset);

}  // namespace tidemark::temporal
