#include "columnar/nested_array.h"

#include <arrow/array.h>

#include <algorithm>

#include "base/error.h"
#include "columnar/foreign_encoder.h"

namespace tidemark::columnar {

namespace {

// Calls `use` with the array as what it is.
template <typename Use>
auto WithList(const arrow::Array& array, Use use) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      return use(static_cast<const arrow::ListArray&>(array));
    case arrow::Type::LARGE_LIST:
      return use(static_cast<const arrow::LargeListArray&>(array));
    case arrow::Type::FIXED_SIZE_LIST:
      return use(static_cast<const arrow::FixedSizeListArray&>(array));
    case arrow::Type::LIST_VIEW:
      return use(static_cast<const arrow::ListViewArray&>(array));
    case arrow::Type::LARGE_LIST_VIEW:
      return use(static_cast<const arrow::LargeListViewArray&>(array));
    default:
      throw base::Error(base::kInternalError, "an array that is no list");
  }
}

// Run ends are the logical rows behind each run, growing.
template <typename ArrayType>
int64_t FirstRunBeyond(const arrow::Array& run_ends, int64_t logical) {
  const auto& ends = static_cast<const ArrayType&>(run_ends);
  const auto* const begin = ends.raw_values();
  return std::upper_bound(begin, begin + ends.length(), logical) - begin;
}

}  // namespace

std::shared_ptr<arrow::Array> ElementsOf(const arrow::Array& list) {
  return StorageOf(WithList(list, [](const auto& array) { return array.values(); }));
}

Range RangeOf(const arrow::Array& list, int64_t row) {
  return WithList(list, [row](const auto& array) {
    const int64_t begin = array.value_offset(row);
    return Range{begin, begin + array.value_length(row)};
  });
}

int64_t PhysicalRow(const arrow::Array& run_end_encoded, int64_t row) {
  const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(run_end_encoded);
  const int64_t logical = runs.offset() + row;
  switch (runs.run_ends()->type_id()) {
    case arrow::Type::INT16:
      return FirstRunBeyond<arrow::Int16Array>(*runs.run_ends(), logical);
    case arrow::Type::INT32:
      return FirstRunBeyond<arrow::Int32Array>(*runs.run_ends(), logical);
    default:
      return FirstRunBeyond<arrow::Int64Array>(*runs.run_ends(), logical);
  }
}

}  // namespace tidemark::columnar
