// Where the values of one row stand inside a list or a run-end encoded array, whatever its layout.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>

namespace tidemark::columnar {

/// Rows of an elements array; `end` is exclusive.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The elements of all rows of a list of any layout, an extension's storage. Throws XX000 for an
/// array that is no list.
std::shared_ptr<arrow::Array> ElementsOf(const arrow::Array& list);

/// The elements of one row that is not NULL, as rows of ElementsOf.
Range RangeOf(const arrow::Array& list, int64_t row);

/// The row of a run-end encoded array's values that holds the value of `row`.
int64_t PhysicalRow(const arrow::Array& run_end_encoded, int64_t row);

}  // namespace tidemark::columnar
