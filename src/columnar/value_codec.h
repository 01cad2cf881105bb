// One codec a type: a PostgreSQL binary value into an array builder, and an array's value back to
// the same bytes. NULL is the caller's. Codecs are immutable and may be shared between threads.
// Formats: the typsend and typreceive functions of PostgreSQL; docs/reference/types.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "columnar/field_type.h"

namespace arrow {
class Array;
class ArrayBuilder;
}  // namespace arrow

namespace tidemark::columnar {

class ValueCodec {
 public:
  virtual ~ValueCodec() = default;

  /// Appends `value` to `builder`, which is of FieldOf's type, and returns the bytes that it takes
  /// there. Throws 22P03 for bytes that PostgreSQL does not send for the type; for values that the
  /// Arrow type cannot hold 22008 (dates and times), 22021 (text that is not UTF-8) or 0A000
  /// (others); the builder is then of no further use.
  virtual size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const = 0;

  /// Appends the value at `row`, which is not NULL, without a length. `array` is of FieldOf's
  /// type. Throws 22008, 22003, 22021 or 22P02 for what the PostgreSQL type cannot hold.
  virtual void Encode(const arrow::Array& array, int64_t row, std::string& out) const = 0;
};

/// The codec between `column` and FieldOf(column).
std::unique_ptr<ValueCodec> MakeValueCodec(const PostgresColumn& column);

}  // namespace tidemark::columnar
