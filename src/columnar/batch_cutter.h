// Batches of another writer, of any size, cut into bounded ones that begin with `_ordinal`. Slices
// share their buffers with what they were cut from; nothing is copied. One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "columnar/batch_reader.h"

namespace arrow {
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::columnar {

class BatchCutter {
 public:
  /// `fields` is the schema of what is given, without `_ordinal`. Throws 42701 if it has a field of
  /// that name, 22023 for limits below 1.
  explicit BatchCutter(const std::shared_ptr<arrow::Schema>& fields, BatchLimits limits = {},
                       int64_t first_ordinal = 1);

  /// `_ordinal`, then the fields.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }

  /// Hands over the next batch to be cut. Throws 55000 while there is still something to Take,
  /// XX000 for another number of columns.
  void Give(std::shared_ptr<arrow::RecordBatch> batch);

  /// The next bounded batch, or null when everything given was taken. A single row larger than
  /// bytes_max is a batch of its own.
  std::shared_ptr<arrow::RecordBatch> Take();

  /// The ordinal of the next row.
  int64_t next_ordinal() const { return next_ordinal_; }

 private:
  int64_t RowsWithinLimits() const;

  std::shared_ptr<arrow::Schema> schema_;
  BatchLimits limits_;
  int64_t next_ordinal_;
  std::shared_ptr<arrow::RecordBatch> rest_;
};

}  // namespace tidemark::columnar
