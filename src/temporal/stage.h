// A capture's private rows of one dataset, before they are compared with what is there:
// tidemark_stage.c<capture>_d<dataset>, unlogged, with `_ordinal` and one column a source column,
// called by its place (c1, c2, …) so that none can be called like one of ours. Never readable by
// anyone else; dropped by its capture, or by the next one when that died.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/batch_copy.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

class Stage {
 public:
  /// Creates it, empty. `columns` are the source's, in the order of its batches; a column that is
  /// not `binary` travels as text and is cast when it is read.
  static Stage Create(pg::Connection& store, int64_t capture, int dataset,
                      std::vector<DatasetColumn> columns);

  /// Begins to fill it; rows come with their ordinals.
  std::unique_ptr<BatchCopy> Fill(pg::Connection& store, std::shared_ptr<arrow::Schema> schema,
                                  Translations translations) const;
  /// The rows are in: looks at them for the planner and, unless they are few, puts them in the order
  /// of the key, so that they meet the current rows in one pass over both. Throws 23505 when the key
  /// (columns of the source) is not unique.
  void Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key);
  void Drop(pg::Connection& store) const;

  const std::string& table() const { return table_; }
  int64_t rows() const { return rows_; }
  /// SQL for the value of the dataset's column `name`, of the stage as `s`.
  std::string Value(const std::string& name) const;
  /// The values of `columns` separated by ", ".
  std::string Values(const std::vector<DatasetColumn>& columns) const;
  std::string Values(const std::vector<std::string>& names) const;
  /// Staged in the order of the key.
  bool ordered() const { return ordered_; }

 private:
  std::string table_;
  std::vector<DatasetColumn> columns_;
  int64_t rows_ = 0;
  bool ordered_ = false;
};

/// Drops the stages of every capture that is not running any more.
void DropDeadStages(pg::Connection& store);

}  // namespace tidemark::temporal
