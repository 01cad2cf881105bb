// What happens to closed partitions of history. They are sealed: rewritten so that the rows alive at
// an instant lie together, and swapped in. Sealed neighbours are merged the same way, so that the
// number of partitions grows with the logarithm of the history. docs/design/0004-sealing.md.
//
//     closed ──► rewritten beside it (rewritten_by) ──► frozen ──► swapped in (sealed)
#pragma once

#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/history.h"

namespace tidemark::temporal {

/// Rewrites several closed or sealed partitions to one (neighbours.h), and swaps it in. The swap
/// waits until every snapshot that could not see the rewritten rows has ended, and holds readers up
/// for a moment at most; both are tried again at the next call. False when there is nothing (more)
/// to do now. Uses transactions of its own; does nothing while another session seals.
bool SealOne(pg::Connection& store, const HistoryLimits& limits);

/// Before closed versions of the dataset change in place: ends a rewrite that runs, discards one
/// that is not swapped in yet, and keeps others from beginning until the caller's transaction ends.
void DiscardRewritten(pg::Connection& store, const Dataset& dataset);

}  // namespace tidemark::temporal
