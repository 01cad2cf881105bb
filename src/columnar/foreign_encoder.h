// Values of Arrow types that another writer chose, as PostgreSQL binary values: the types that
// foreign_type.h maps and that value_codec.h has no codec for. One way only. A value is never
// changed: it is written whole or refused.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>

#include "columnar/field_type.h"
#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The encoder from arrays of `type` to `column`, as ColumnOfForeign or a field's metadata gave it.
/// Throws 42804 when there is none.
std::unique_ptr<ValueEncoder> MakeForeignEncoder(const arrow::DataType& type,
                                                 const PostgresColumn& column);

/// The array that holds the values: an extension array's storage, else `array` itself.
std::shared_ptr<arrow::Array> StorageOf(std::shared_ptr<arrow::Array> array);

/// Whether the value at `row` is NULL, also where the NULL stands in a dictionary.
bool IsNullAt(const arrow::Array& array, int64_t row);

}  // namespace tidemark::columnar
