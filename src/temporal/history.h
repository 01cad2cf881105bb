// The partitions of history tables by _to: tables that inherit from the history table, each with a
// constraint on _to by which the planner leaves it out. The newest one is open-ended and takes all
// new rows; when it is full it is closed and a new one opened, and once closed it is sealed
// (sealing.h). Partitions change only under an exclusive lock of the whole history table: a
// statement that was planned before takes its snapshot only afterwards, and would miss rows in a
// partition that its plan does not know. docs/design/0004-sealing.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

struct HistoryLimits {
  /// A partition of this size is rewritten in seconds. Those of most tables are smaller.
  int64_t rows_aimed = 1'000'000;
  /// How long after its closing a partition waits for others, to be sealed with them.
  std::chrono::seconds seal_after{0};
  int64_t merge_bytes = int64_t{4} << 30;     // sealed ones are merged up to this size, indexes apart
  /// How long history is kept, as intervals for PostgreSQL: by whole partitions, so that merged
  /// ones span an eighth of the shortest at most. None: for ever.
  std::vector<std::string> retentions = {};
};

/// Creates the first, open partition of a new history table.
void CreateFirstPartition(pg::Connection& store, const Dataset& dataset);

/// The index by which a partition finds a key's versions; empty for datasets without a key.
std::string KeyIndexSql(const std::string& partition, const std::vector<std::string>& key_columns);

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
    int64_t rows = 0, aimed = 0;
    bool loaded = false;  // rows from before this process have been added
    base::Deadline::Clock::time_point tried{};
  };
  pg::Connection* store_;
  HistoryLimits limits_;
  std::map<int, Open> open_;
};

}  // namespace tidemark::temporal
