// The partitions of history tables: range-partitioned by _to. The newest one is open-ended and takes
// all new rows; when it is full it is closed and a new one opened, and once closed it is sealed
// (rewritten in _from order). Partitions change only under an exclusive lock of the whole history
// table: a statement that was planned before takes its snapshot only afterwards, and would miss rows
// in a partition that its plan does not know. docs/design/0004-sealing.md.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>

#include "base/clock.h"
#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

struct HistoryLimits {
  int64_t rows_aimed = 1'000'000;  // a partition of this size is rewritten in seconds
};

/// Creates the first, open partition of a new history table.
void CreateFirstPartition(pg::Connection& store, const Dataset& dataset);

/// Counts what goes into the open partitions and closes full ones.
class HistoryPartitions {
 public:
  HistoryPartitions(pg::Connection& store, HistoryLimits limits)
      : store_(&store), limits_(limits) {}
  /// `rows` were written to the dataset's history.
  void Count(const Dataset& dataset, int64_t rows) { open_[dataset.id].rows += rows; }
  /// Closes the open partition before `tx_next` and opens a new one, if it is full and no reader is
  /// in the way; otherwise a later call does. Call outside transactions, with every row up to
  /// tx_next - 1 committed.
  void RollOver(const Dataset& dataset, int64_t tx_next);

 private:
  struct Open {
    int64_t rows = 0;
    bool loaded = false;  // rows from before this process have been added
    base::Deadline::Clock::time_point tried{};
  };
  pg::Connection* store_;
  HistoryLimits limits_;
  std::map<int, Open> open_;
};

/// Rewrites one closed, unsealed partition in _from order and swaps it in. The swap waits until every
/// snapshot that could not see the rewritten rows has ended, and holds readers up for a moment at
/// most; both are tried again at the next call. False when there is nothing (more) to do now. Uses
/// transactions of its own.
///
///     closed ──► rewritten beside it (rewritten_by) ──► frozen ──► swapped in (sealed)
bool SealOne(pg::Connection& store);

}  // namespace tidemark::temporal
