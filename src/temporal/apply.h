// Writing a transition into the plane: closed versions to history, the newest to the current
// table. The recipe of design.md, section 3.3, but by key (docs/design/0016): stage the rows that
// end; what the update of those that are replaced has found goes to history by a trigger, and what
// is removed before it is. Datasets without a key look each row up by its hash and go by ctid. One
// thread, inside the transaction that its caller publishes.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "pg/connection.h"
#include "temporal/apply_statements.h"
#include "temporal/dataset.h"
#include "temporal/history.h"
#include "temporal/transition.h"

namespace tidemark::temporal {

class Applier {
 public:
  /// Borrows the connection and sets the planner up for keyed batches; use it for nothing else.
  Applier(pg::Connection& store, HistoryLimits limits);

  /// Gives the session's planner back as it was: for the rest of a transaction that others share.
  void RestorePlanner();
  /// The opposite: keyed batches again.
  void PreparePlanner();

  /// Rows have gone to the dataset's history by another way.
  void CountHistory(const Dataset& dataset, int64_t rows) { partitions_.Count(dataset, rows); }

  /// Applies and clears the transition. Throws XX001 when a row that must be there is not (naming
  /// relation and key), and whatever the store refuses.
  void Apply(Transition& transition);

  /// Closes all current rows at `tx`. Pending changes of the dataset must have been applied.
  /// Returns how many rows there were.
  int64_t Truncate(const Dataset& dataset, int64_t tx);

  /// The dataset's columns or key have changed, inside this transaction: what was prepared for it
  /// is made anew. Its pending changes must have been applied.
  void Forget(const Dataset& dataset);

  /// Between transactions: closes the dataset's history partition if it is full. `tx_next` is the
  /// first tx that has not been written yet.
  void Tidy(const Dataset& dataset, int64_t tx_next) { partitions_.RollOver(dataset, tx_next); }

 private:
  const ApplyStatements& For(const Dataset& dataset);
  struct Staged {
    int64_t removed = 0, replaced = 0;
    bool keeps = false;
  };
  Staged Stage(Transition& transition, const ApplyStatements& sql);
  void DeleteStaged(const Dataset& dataset, const ApplyStatements& sql);
  void NoteStaged(Transition& transition, const ApplyStatements& sql);
  int64_t ApplyStaged(Transition& transition, const ApplyStatements& sql);
  int64_t Remove(const Dataset& dataset, const ApplyStatements& sql, int64_t staged);
  int64_t Replace(const Dataset& dataset, const ApplyStatements& sql, const Staged& staged);
  static bool NeedsKept(Transition& transition);
  void FetchKept(Transition& transition, const ApplyStatements& sql);
  void CopyVersions(Transition& transition, const ApplyStatements& sql);
  /// Throws XX001 if a staged row has no current one; before any is removed.
  void RefuseMissing(const Dataset& dataset, const ApplyStatements& sql);
  /// Throws XX001 unless every staged row was found once.
  void RequireFound(const Dataset& dataset, const ApplyStatements& sql, int64_t staged,
                    int64_t found);

  pg::Connection* store_;
  HistoryPartitions partitions_;
  std::map<int, std::unique_ptr<ApplyStatements>> statements_;
  // Of datasets whose temporary tables have been used: bytes since they were truncated, about.
  std::map<int, size_t> staged_;
};

}  // namespace tidemark::temporal
