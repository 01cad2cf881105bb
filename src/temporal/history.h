// The partitions of history tables: range-partitioned by _to, each covering a span of txs, made
// when the stream gets there, sealed (rewritten in _from order) once no more rows can come.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Keeps a partition ready for every tx that is about to be written. Belongs to one connection's
/// transactions; after a rollback make a new one.
class HistoryPartitions {
 public:
  explicit HistoryPartitions(pg::Connection& store) : store_(&store) {}
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
  std::map<int, Newest> newest_;
};

/// Rewrites one full, unsealed partition in _from order and swaps it in; readers wait at most a
/// moment for the swap. False when there was nothing to seal or readers held it up. Uses its own
/// transactions.
bool SealOne(pg::Connection& store);

}  // namespace tidemark::temporal
