// From a complete stage, or a cursor's delta, to the sparse transition, and its way into the plane:
// all in the store and set-based, so that the process holds nothing. A put is a staged row whose
// key is new or whose image differs (record_image, which needs no equality); a deletion is a
// current row whose key was not staged. Inside the transaction that its caller publishes. One
// thread.
//
//   stage ⟗ current ──► changed_<id> (staged, current) ──► digest ──► history, delete, update, insert
//        └── checks: every staged key once, none NULL
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"
#include "temporal/stage.h"

namespace tidemark::temporal {

/// Lets the planner use parallel workers for the rest of the transaction where they pay at all.
void PreferParallel(pg::Connection& store);

/// What a capture changes in one dataset.
struct TransitionSummary {
  int64_t puts = 0, deletions = 0;
  int64_t rows_added = 0;  // may be negative
  int64_t to_history = 0;
  std::string digest;      // 32 bytes in hex: docs/formats/version.md
  bool empty() const { return puts == 0 && deletions == 0; }
};

class Reduction {
 public:
  /// The dataset has the shape of the stage (FollowShape).
  Reduction(pg::Connection& store, const Dataset& dataset, const Stage& stage);

  /// Compares; datasets without a key as multisets of whole rows, for which `complete` must be
  /// true. `live_rows` is how many there are now; `complete`: what was not staged is gone. Throws
  /// 23505 or 23502 for keys that are not unique or NULL, naming up to ten with their ordinals,
  /// XX001 when the counts contradict each other. Call once.
  const TransitionSummary& Reduce(int64_t live_rows, bool complete);

  /// Writes the transition as `tx`.
  void Apply(int64_t tx);

 private:
  std::string Differs() const;
  void CompareByKey(bool complete);
  void CompareByRow();
  void CheckKeys(bool all, int64_t inserted);

  pg::Connection* store_;
  const Dataset* dataset_;
  const Stage* stage_;
  std::string changed_;
  TransitionSummary summary_;
};

/// Throws 23505 or 23502 if a key stands twice or as NULL in `rows`, SQL for a FROM item; `keys`
/// and `ordinal` are SQL for the key's values and the row's number in it.
void RefuseBadKeys(pg::Connection& store, const Dataset& dataset, const std::string& rows,
                   const std::vector<std::string>& keys, const std::string& ordinal);

/// The same for a stage and the key that its dataset is to have.
void RefuseStagedKeys(pg::Connection& store, const Dataset& dataset, const Stage& stage,
                      const std::vector<std::string>& key);

}  // namespace tidemark::temporal
