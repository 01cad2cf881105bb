// The partitions of history tables: range-partitioned by _to, each covering a span of txs, made
// when the stream gets there, sealed (rewritten in _from order) once no more rows can come.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

struct HistoryLimits {
  int64_t rows_aimed = 1'000'000;     // a partition of this size is rewritten in seconds
  int64_t first_transactions = 65'536;  // how many txs the first partition covers
};

/// Keeps a partition ready for every tx that is about to be written. Belongs to one connection's
/// transactions; after a rollback make a new one.
class HistoryPartitions {
 public:
  HistoryPartitions(pg::Connection& store, HistoryLimits limits)
      : store_(&store), limits_(limits) {}
  /// Makes sure that rows with _to <= tx have a partition. Cheap when they do.
  void Cover(const Dataset& dataset, int64_t tx);
  /// `rows` were written up to `tx`: decides how wide the next partition is.
  void Count(const Dataset& dataset, int64_t rows);

 private:
  struct Newest {
    int number = 0;
    int64_t from = 0, to = 0;  // [from, to)
    int64_t rows = 0;
  };
  Newest& Load(const Dataset& dataset);
  pg::Connection* store_;
  HistoryLimits limits_;
  std::map<int, Newest> newest_;
};

/// Rewrites one full, unsealed partition in _from order and swaps it in. The swap waits until every
/// snapshot that could not see the rewritten rows has ended, and holds readers up for a moment at
/// most; both are tried again at the next call. False when there is nothing (more) to do now. Uses
/// transactions of its own.
///
///     open ──► rewritten beside it (rewritten_by) ──► frozen ──► swapped in (sealed)
bool SealOne(pg::Connection& store);

}  // namespace tidemark::temporal
