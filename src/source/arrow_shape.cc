#include "source/arrow_shape.h"

#include <arrow/type.h>
#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "columnar/batch_cutter.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kDuplicateColumn{"42701"};

}  // namespace

RelationShape ShapeOfFields(const std::string& relation,
                            const std::shared_ptr<arrow::Schema>& fields) {
  RelationShape shape;
  std::vector<std::string> reasons;
  std::set<std::string> names;
  for (const auto& field : fields->fields()) {
    if (field->name().empty()) {
      throw base::Error(base::kSyntaxError,
                        fmt::format("relation {} has a column without a name", relation));
    }
    if (!names.insert(field->name()).second) {
      throw base::Error(kDuplicateColumn, fmt::format("relation {} has column \"{}\" twice",
                                                      relation, field->name()));
    }
    try {
      shape.columns.push_back({.column = columnar::ColumnOf(*field),
                               .source_type = field->type()->ToString(),
                               .nullable = field->nullable()});
    } catch (const base::Error& error) {
      reasons.push_back(error.message());
    }
  }
  RefuseColumns(relation, reasons);
  shape.schema = columnar::BatchCutter(fields).schema();
  return shape;
}

}  // namespace tidemark::source
