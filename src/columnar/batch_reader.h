// COPY BINARY rows as Arrow batches of bounded size. Takes the stream in any chunks; holds at most
// one batch and one row. Not a decoder of values: value_codec.h. One thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/field_type.h"
#include "columnar/value_codec.h"
#include "wire/copy_binary.h"

namespace arrow {
class RecordBatch;
}  // namespace arrow

namespace tidemark::columnar {

/// A batch ends with the row that reaches one of these.
struct BatchLimits {
  int64_t rows_max = 64 * 1024;
  /// Of values as they stand in Arrow. A batch exceeds it by less than one row.
  int64_t bytes_max = 16 * 1024 * 1024;
};

/// Reads header, rows and trailer of one copy, whose text must be in UTF-8.
///
///     Feed(chunk)  ──► Next() ──kBatch──► TakeBatch() ──► Next() …
///          ▲             ├──kNeedMore─┐
///          └─────────────┼────────────┘
///                        └──kEnd: the trailer was read, every row given
class BatchReader {
 public:
  enum class Step { kBatch, kNeedMore, kEnd };

  /// Rows are numbered from `first_ordinal`, so that a copy in several parts counts on. Throws
  /// 22023 for limits below 1.
  explicit BatchReader(std::span<const PostgresColumn> columns, BatchLimits limits = {},
                       int64_t first_ordinal = 1);
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  ~BatchReader();

  /// `_ordinal` and the columns: SchemaOf. The same for every batch.
  const std::shared_ptr<arrow::Schema>& schema() const { return schema_; }

  /// Give the next chunk, borrowed until Next has returned kNeedMore or kEnd. Throws 55000 while
  /// Next has not asked for it.
  void Feed(std::string_view chunk) { rows_.Feed(chunk); }
  template <std::same_as<std::string> Temporary>
  void Feed(Temporary&& chunk) = delete;  // it would die before it is read

  /// Read on up to the next full batch, or the last one before the end; never an empty one. Throws
  /// what CopyBinaryReader and ValueCodec throw, with column and ordinal as context line, 08P01 for
  /// rows of another number of fields, 54000 when an array is full; then of no further use.
  Step Next();

  /// The batch that Next has announced. Throws 55000 unless it has just returned kBatch.
  std::shared_ptr<arrow::RecordBatch> TakeBatch();

  /// To be called when the server has ended the copy. Throws 08P01 unless the trailer was read.
  void ExpectEnd() const { rows_.ExpectEnd(); }

  /// The ordinal of the next row.
  int64_t next_ordinal() const { return next_ordinal_; }

 private:
  struct Column;

  void AppendRow(std::span<const wire::CopyField> fields);
  Step FinishBatch();

  BatchLimits limits_;
  int64_t next_ordinal_;
  wire::CopyBinaryReader rows_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<Column> columns_;
  int64_t batch_rows_ = 0;
  int64_t batch_bytes_ = 0;
  std::shared_ptr<arrow::RecordBatch> batch_;
};

}  // namespace tidemark::columnar
