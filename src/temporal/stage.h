// A capture's private rows of one dataset, before they are compared with what is there:
// tidemark_stage.c<capture>_d<dataset>, unlogged, with `_ordinal` and one column a source column,
// called by its place (c1, c2, …) so that none can be called like one of ours. A complete capture
// that was sifted (sift.h) stages only rows that may differ, and beside them in …_rest the places
// of the current rows that were not met. Never readable by anyone else; dropped by its capture, or
// by the next one when that died.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/batch_copy.h"
#include "temporal/dataset.h"
#include "temporal/sift.h"

namespace tidemark::temporal {

class Stage {
 public:
  /// Creates it, empty. `columns` are the source's, in the order of its batches; a column that is
  /// not `binary` travels as text and is cast when it is read.
  static Stage Create(pg::Connection& store, int64_t capture, int dataset,
                      std::vector<DatasetColumn> columns);

  /// The same for rows that are copied as they come, where `hashed` with a `_hash` each; ordinals
  /// are given by the store.
  static Stage CreateForCopy(pg::Connection& store, int64_t capture, int dataset,
                             std::vector<DatasetColumn> columns, bool hashed);
  /// What CreateForCopy's stage is filled by: COPY … (FORMAT binary).
  std::string CopyCommand() const;

  /// Begins to fill it with the rows that `filter`, if there is one, wants; they come with their
  /// ordinals.
  std::unique_ptr<BatchCopy> Fill(pg::Connection& store, RowFilter* filter = nullptr) const;
  /// The rows are in: looks at them for the planner and, unless they are few, puts them in the
  /// order of the key, so that they meet the current rows in one pass over both. Throws 23505 when
  /// the key (columns of the source) is not unique.
  void Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key);
  /// The same after a sift: with the current rows that it has left.
  void Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key,
              Remainder remainder);
  void Drop(pg::Connection& store) const;

  /// Looks at the rows for the planner; for datasets without a key.
  void FinishKeyless(pg::Connection& store, int64_t rows);

  const std::string& table() const { return table_; }
  int64_t rows() const { return rows_; }
  /// SQL for the value of the dataset's column `name`, of the stage as `s`.
  std::string Value(const std::string& name) const;
  /// The values of `columns` separated by ", ".
  std::string Values(const std::vector<DatasetColumn>& columns) const;
  std::string Values(const std::vector<std::string>& names) const;
  /// Staged in the order of the key.
  bool ordered() const { return ordered_; }

  /// Current rows that are in the source as they are: neither staged nor among the Opposite.
  int64_t met() const { return met_; }
  /// SQL for a FROM item: the rows of `current`, a quoted table, that the staged ones are to be
  /// compared with, with their ctid.
  std::string Opposite(const std::string& current) const;
  /// Throws 55000 unless the file of the current table is still the one that was sifted.
  void CheckFile(pg::Connection& store, const Dataset& dataset) const;
  /// Whether a staged row has the key of a current row that was met: then the key is there twice,
  /// and only staging the relation as a whole tells where.
  bool RepeatsMetKey(pg::Connection& store, const Dataset& dataset) const;

 private:
  std::string Rest() const { return table_ + "_rest"; }

  std::string table_;
  std::vector<DatasetColumn> columns_;
  int64_t rows_ = 0, met_ = 0;
  bool ordered_ = false, hashed_ = false;
  pg::Oid file_ = 0;
  std::optional<RowPlace> beyond_;
};

/// Drops the stages of every capture that is not running any more.
void DropDeadStages(pg::Connection& store);

}  // namespace tidemark::temporal
