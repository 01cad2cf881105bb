#include "columnar/batch_cutter.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "columnar/arrow_status.h"

namespace tidemark::columnar {

namespace {

constexpr base::SqlState kDuplicateColumn{"42701"};

// Bytes of the rows of `batch` alone. A dictionary counts whole, which is never too little.
int64_t BytesOf(const arrow::RecordBatch& batch) {
  int64_t bytes = 0;
  for (const auto& column : batch.columns()) {
    const auto referenced = arrow::util::ReferencedBufferSize(*column);
    // Some layouts (views, run ends) cannot be measured by slice; their whole buffers count then.
    bytes += referenced.ok() ? *referenced : arrow::util::TotalBufferSize(*column);
  }
  return bytes;
}

}  // namespace

BatchCutter::BatchCutter(const std::shared_ptr<arrow::Schema>& fields, BatchLimits limits,
                         int64_t first_ordinal)
    : limits_(limits), next_ordinal_(first_ordinal) {
  if (limits.rows_max < 1 || limits.bytes_max < 1) {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("a batch cannot be limited to {} rows and {} bytes",
                                  limits.rows_max, limits.bytes_max));
  }
  if (!fields->GetAllFieldIndices(kOrdinalName).empty()) {
    throw base::Error(kDuplicateColumn,
                      fmt::format("column name \"{}\" is reserved", kOrdinalName));
  }
  arrow::FieldVector all{arrow::field(kOrdinalName, arrow::int64(), /*nullable=*/false)};
  all.insert(all.end(), fields->fields().begin(), fields->fields().end());
  schema_ = arrow::schema(std::move(all));
}

void BatchCutter::Give(std::shared_ptr<arrow::RecordBatch> batch) {
  if (rest_ != nullptr) {
    throw base::Error(base::kNotInPrerequisiteState, "a batch is still being cut");
  }
  if (batch->num_columns() + 1 != schema_->num_fields()) {
    throw base::Error(base::kInternalError,
                      fmt::format("a batch of {} columns for {} fields", batch->num_columns(),
                                  schema_->num_fields() - 1));
  }
  if (batch->num_rows() > 0) rest_ = std::move(batch);
}

int64_t BatchCutter::RowsWithinLimits() const {
  int64_t rows = std::min(rest_->num_rows(), limits_.rows_max);
  while (rows > 1) {
    const int64_t bytes = BytesOf(*rest_->Slice(0, rows));
    if (bytes <= limits_.bytes_max) break;
    // By the mean row; uneven rows take a few steps more.
    const auto fitting = static_cast<int64_t>(static_cast<double>(rows) *
                                              static_cast<double>(limits_.bytes_max) /
                                              static_cast<double>(bytes));
    rows = std::clamp<int64_t>(fitting, 1, rows - 1);
  }
  return rows;
}

std::shared_ptr<arrow::RecordBatch> BatchCutter::Take() {
  if (rest_ == nullptr) return nullptr;
  const int64_t rows = RowsWithinLimits();
  arrow::Int64Builder ordinals;
  Check(ordinals.Reserve(rows));
  for (int64_t i = 0; i < rows; ++i) ordinals.UnsafeAppend(next_ordinal_ + i);
  arrow::ArrayVector arrays{columnar::Take(ordinals.Finish())};
  const auto piece = rest_->Slice(0, rows);
  arrays.insert(arrays.end(), piece->columns().begin(), piece->columns().end());
  next_ordinal_ += rows;
  rest_ = rows < rest_->num_rows() ? rest_->Slice(rows) : nullptr;
  return arrow::RecordBatch::Make(schema_, rows, std::move(arrays));
}

}  // namespace tidemark::columnar
