#include "columnar/batch_reader.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "columnar/arrow_status.h"

namespace tidemark::columnar {

struct BatchReader::Column {
  std::string name;
  std::unique_ptr<ValueCodec> codec;
  std::unique_ptr<arrow::ArrayBuilder> builder;
};

BatchReader::BatchReader(std::span<const PostgresColumn> columns, BatchLimits limits,
                         int64_t first_ordinal)
    : limits_(limits), next_ordinal_(first_ordinal), schema_(SchemaOf(columns)) {
  if (limits.rows_max < 1 || limits.bytes_max < 1) {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("a batch cannot be limited to {} rows and {} bytes",
                                  limits.rows_max, limits.bytes_max));
  }
  for (const PostgresColumn& column : columns) {
    const auto& type = schema_->field(static_cast<int>(columns_.size()) + 1)->type();
    columns_.push_back({column.name, MakeValueCodec(column), Take(arrow::MakeBuilder(type))});
  }
}

BatchReader::~BatchReader() = default;

BatchReader::Step BatchReader::Next() {
  batch_ = nullptr;
  while (true) {
    switch (rows_.Next()) {
      case wire::CopyBinaryReader::Step::kRow:
        AppendRow(rows_.fields());
        if (batch_rows_ >= limits_.rows_max || batch_bytes_ >= limits_.bytes_max) {
          return FinishBatch();
        }
        break;
      case wire::CopyBinaryReader::Step::kNeedMore:
        return Step::kNeedMore;
      case wire::CopyBinaryReader::Step::kEnd:
        return batch_rows_ > 0 ? FinishBatch() : Step::kEnd;
    }
  }
}

std::shared_ptr<arrow::RecordBatch> BatchReader::TakeBatch() {
  if (batch_ == nullptr) throw base::Error(base::kNotInPrerequisiteState, "no batch is complete");
  return std::exchange(batch_, nullptr);
}

void BatchReader::AppendRow(std::span<const wire::CopyField> fields) {
  if (fields.size() != columns_.size()) {
    throw base::Error(base::kProtocolViolation,
                      fmt::format("the copy has rows of {} fields for {} columns", fields.size(),
                                  columns_.size()));
  }
  size_t bytes = sizeof next_ordinal_;
  size_t at = 0;
  try {
    for (; at < columns_.size(); ++at) {
      Column& column = columns_[at];
      if (fields[at].has_value()) {
        bytes += column.codec->Decode(*fields[at], *column.builder);
      } else {
        Check(column.builder->AppendNull());
      }
    }
  } catch (base::Error& error) {
    error.AddContext(fmt::format("column \"{}\" of row {}", columns_[at].name, next_ordinal_));
    throw;
  }
  ++next_ordinal_;
  ++batch_rows_;
  batch_bytes_ += static_cast<int64_t>(bytes);
}

BatchReader::Step BatchReader::FinishBatch() {
  arrow::Int64Builder ordinals;
  Check(ordinals.Reserve(batch_rows_));
  for (int64_t i = next_ordinal_ - batch_rows_; i < next_ordinal_; ++i) ordinals.UnsafeAppend(i);
  arrow::ArrayVector arrays{Take(ordinals.Finish())};
  for (Column& column : columns_) arrays.push_back(Take(column.builder->Finish()));
  batch_ = arrow::RecordBatch::Make(schema_, std::exchange(batch_rows_, 0), std::move(arrays));
  batch_bytes_ = 0;
  return Step::kBatch;
}

}  // namespace tidemark::columnar
