#include "source/files/schema_union.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "columnar/arrow_status.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kDuplicateColumn{"42701"};

}  // namespace

void SchemaUnion::Add(const std::string& path, const arrow::Schema& schema) {
  const bool first = columns_.empty();
  std::set<std::string> names;
  for (const auto& field : schema.fields()) {
    if (!names.insert(field->name()).second) {
      throw base::Error(kDuplicateColumn,
                        fmt::format("file \"{}\" has column \"{}\" twice", path, field->name()));
    }
    const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) {
      return column.field->name() == field->name();
    });
    if (at == columns_.end()) {
      columns_.push_back({first ? field : field->WithNullable(true), path});
    } else if (at->field->type()->id() == arrow::Type::NA) {
      *at = {field->WithNullable(true), path};
    } else if (field->type()->id() == arrow::Type::NA) {
      at->field = at->field->WithNullable(true);
    } else if (!at->field->type()->Equals(*field->type())) {
      throw base::Error(base::kDatatypeMismatch,
                        fmt::format("column \"{}\" is {} in file \"{}\" and {} in file \"{}\"",
                                    field->name(), at->field->type()->ToString(), at->path,
                                    field->type()->ToString(), path));
    } else if (field->nullable()) {
      at->field = at->field->WithNullable(true);
    }
  }
  for (Column& column : columns_) {
    if (!names.contains(column.field->name())) column.field = column.field->WithNullable(true);
  }
}

std::shared_ptr<arrow::Schema> SchemaUnion::schema() const {
  arrow::FieldVector fields;
  for (const Column& column : columns_) fields.push_back(column.field);
  return arrow::schema(std::move(fields));
}

std::shared_ptr<arrow::RecordBatch> Aligned(const std::shared_ptr<arrow::Schema>& schema,
                                            const arrow::RecordBatch& batch) {
  arrow::ArrayVector arrays;
  for (const auto& field : schema->fields()) {
    auto array = batch.GetColumnByName(field->name());
    if (array == nullptr || array->type_id() != field->type()->id()) {
      array = columnar::Take(arrow::MakeArrayOfNull(field->type(), batch.num_rows()));
    }
    arrays.push_back(std::move(array));
  }
  return arrow::RecordBatch::Make(schema, batch.num_rows(), std::move(arrays));
}

}  // namespace tidemark::source
