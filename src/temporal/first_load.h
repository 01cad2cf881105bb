// The first capture of a dataset: rows straight into its current table, which is not attached to
// anything yet, so that nobody sees any before the publish. No comparison and no second writing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pg/connection.h"
#include "pg/relation.h"
#include "temporal/batch_copy.h"
#include "temporal/dataset.h"
#include "temporal/put_digest.h"
#include "temporal/reduction.h"

namespace tidemark::temporal {

/// The tx of a dataset's first state.
inline constexpr int64_t kFirstTx = 1;

/// The relation that plane.h makes of a dataset whose source tells no more than columns and key.
pg::Relation RelationOf(const Dataset& dataset, const std::vector<std::string>& not_null);

/// Fills tidemark_current.d<id> by one COPY in one transaction: so its rows lie in the order of
/// their ordinals.
class FirstLoad {
 public:
  /// Creates the table and begins the copy. `dataset` is registered and all binary.
  FirstLoad(pg::Connection& store, const Dataset& dataset, const pg::Relation& relation);

  BatchCopy& copy() { return *copy_; }
  /// Ends the copy and commits. Rows taken.
  int64_t Finish();
  /// After Finish: the digest of the rows, perhaps still in the making; nullptr if only the store
  /// can compute it.
  std::unique_ptr<PutDigest> TakeDigest() { return std::move(digest_); }

 private:
  std::unique_ptr<PutDigest> digest_;
  std::optional<pg::Transaction> transaction_;
  std::unique_ptr<BatchCopy> copy_;
};

/// The same from a stage, for values that travel as text.
void LoadFromStage(pg::Connection& store, const Dataset& dataset, const pg::Relation& relation,
                   const Stage& stage);

/// Builds the key and looks at the rows; what is put. Without a `digest` (nullptr) the store
/// computes it. Throws 23505 or 23502 as Reduction does.
TransitionSummary FinishFirstLoad(pg::Connection& store, const Dataset& dataset,
                                  const pg::Relation& relation, int64_t rows, PutDigest* digest);

}  // namespace tidemark::temporal
