// Arrow batches as rows of COPY BINARY: the way back of batch_reader.h, for its batches and for any
// whose types PostgreSQL has. Header and trailer are wire::CopyBinaryWriter's. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "columnar/field_type.h"
#include "columnar/value_codec.h"

namespace arrow {
class RecordBatch;
}  // namespace arrow

namespace tidemark::columnar {

class CopyEncoder {
 public:
  struct Options {
    /// Write a leading `_ordinal` as the first field, an int8. Otherwise it only names rows in
    /// errors.
    bool write_ordinal = false;
  };

  /// The target's columns are known by `schema` alone: ColumnOf. Throws what that throws, and
  /// 54011 for more columns than a row can have.
  explicit CopyEncoder(std::shared_ptr<arrow::Schema> schema);
  CopyEncoder(std::shared_ptr<arrow::Schema> schema, Options options);
  ~CopyEncoder();

  /// The columns of the rows, in order.
  const std::vector<PostgresColumn>& columns() const { return columns_; }

  /// Appends the rows of `batch`, which may be a slice, to `out`. Throws 42804 for a batch of
  /// another schema, 54000 for a value of 2 GiB or more, and what ValueEncoder throws, with column
  /// and ordinal (without `_ordinal` the row's number in the batch) as context line; `out` is then
  /// as it was.
  void WriteBatch(const arrow::RecordBatch& batch, std::string& out) const;

 private:
  std::shared_ptr<arrow::Schema> schema_;
  int ordinal_field_ = -1;  // -1: the schema has none
  int first_field_ = 0;     // the field of columns_[0]
  std::vector<PostgresColumn> columns_;
  std::vector<std::unique_ptr<ValueEncoder>> encoders_;
};

}  // namespace tidemark::columnar
