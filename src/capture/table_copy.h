// Copying one stretch of one table from an adopted snapshot of the source into the store, COPY
// BINARY to COPY BINARY: rows are not looked at unless their values name types by OID or the table
// has no key. One source and one store connection, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "temporal/dataset.h"
#include "temporal/transition.h"

namespace tidemark::capture {

/// A stretch of a table by block numbers: [first, end); whole table when both are empty.
struct BlockRange {
  std::optional<int64_t> first, end;
};

struct CopyTask {
  const temporal::Dataset* dataset;
  base::QualifiedName upstream;
  bool only = true;  // ONLY: not the inheritance children; false for a partitioned root
  BlockRange range;
  temporal::Translations translations;
  std::string command;  // COPY … of a stage; empty: as the dataset is kept
};

/// Rows go into tidemark_current.d<id>, as CreateCurrent has made it, or, when a type travels as
/// text, into its stage (StageTable) for FillFromStage. `progressed(rows, bytes)` is called now and
/// then. Returns the number of rows.
int64_t CopyTable(pg::Connection& source, pg::Connection& store, const CopyTask& task,
                  const std::function<void(int64_t, int64_t)>& progressed);

/// A TRUNCATE or rewrite between the snapshot and the copy's lock leaves nothing for the snapshot
/// to see; and COPY finds the table and its columns by the names that they have by then, not by
/// those of the snapshot. The copy would be wrong without a sign: throws 40001 then. Call while the
/// copy's lock is held.
void RequireUnchanged(pg::Connection& source, const pg::Relation& relation);

/// Creates the unlogged stage of a dataset that is not all binary.
void CreateStage(pg::Connection& store, const temporal::Dataset& dataset);
/// Casts the staged rows into the current table and drops the stage.
void FillFromStage(pg::Connection& store, const temporal::Dataset& dataset);
void DropStage(pg::Connection& store, int dataset_id);

}  // namespace tidemark::capture
