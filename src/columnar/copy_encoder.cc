#include "columnar/copy_encoder.h"

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/error.h"
#include "columnar/foreign_encoder.h"
#include "wire/copy_binary.h"

namespace tidemark::columnar {

namespace {

constexpr base::SqlState kTooManyColumns{"54011"};

bool IsOrdinal(const arrow::Field& field) {
  return field.name() == kOrdinalName && field.type()->id() == arrow::Type::INT64;
}

}  // namespace

CopyEncoder::CopyEncoder(std::shared_ptr<arrow::Schema> schema)
    : CopyEncoder(std::move(schema), Options{}) {}

CopyEncoder::CopyEncoder(std::shared_ptr<arrow::Schema> schema, Options options)
    : schema_(std::move(schema)) {
  if (schema_->num_fields() > std::numeric_limits<int16_t>::max()) {
    throw base::Error(kTooManyColumns,
                      fmt::format("cannot copy a row of {} fields", schema_->num_fields()));
  }
  if (schema_->num_fields() > 0 && IsOrdinal(*schema_->field(0))) ordinal_field_ = 0;
  if (ordinal_field_ == 0 && !options.write_ordinal) first_field_ = 1;
  for (int i = first_field_; i < schema_->num_fields(); ++i) {
    columns_.push_back(ColumnOf(*schema_->field(i)));
    encoders_.push_back(MakeValueEncoder(*schema_->field(i)));
  }
}

CopyEncoder::~CopyEncoder() = default;

void CopyEncoder::WriteBatch(const arrow::RecordBatch& batch, std::string& out) const {
  if (!batch.schema()->Equals(*schema_, /*check_metadata=*/false)) {
    throw base::Error(base::kDatatypeMismatch, "a batch differs from the schema of its copy")
        .Detail(fmt::format("It has {}.", batch.schema()->ToString()));
  }
  arrow::ArrayVector arrays;
  for (int i = first_field_; i < batch.num_columns(); ++i) {
    arrays.push_back(StorageOf(batch.column(i)));
  }
  const size_t before = out.size();
  wire::CopyBinaryWriter writer(out);
  int64_t row = 0;
  size_t at = 0;
  try {
    for (; row < batch.num_rows(); ++row) {
      writer.WriteRow(static_cast<int16_t>(encoders_.size()));
      for (at = 0; at < encoders_.size(); ++at) {
        if (IsNullAt(*arrays[at], row)) {
          writer.WriteNull();
          continue;
        }
        const size_t begun = writer.BeginField();
        encoders_[at]->Encode(*arrays[at], row, out);
        writer.EndField(begun);
      }
    }
  } catch (base::Error& error) {
    out.resize(before);
    const int64_t ordinal =
        ordinal_field_ < 0
            ? row + 1
            : static_cast<const arrow::Int64Array&>(*batch.column(ordinal_field_)).Value(row);
    error.AddContext(fmt::format("column \"{}\" of row {}", columns_[at].name, ordinal));
    throw;
  }
}

}  // namespace tidemark::columnar
