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

/// From Arrow to PostgreSQL only.
class ValueEncoder {
 public:
  virtual ~ValueEncoder() = default;

  /// Appends the value at `row`, which is not NULL, without a length. `array` is of the type that
  /// the encoder was made for. Throws 22008, 22003, 22021 or 22P02 for what the PostgreSQL type
  /// cannot hold, 0A000 for what has no form in it.
  virtual void Encode(const arrow::Array& array, int64_t row, std::string& out) const = 0;
};

class ValueCodec : public ValueEncoder {
 public:
  /// Appends `value` to `builder`, which is of FieldOf's type, and returns the bytes that it takes
  /// there. Throws 22P03 for bytes that PostgreSQL does not send for the type; for values that the
  /// Arrow type cannot hold 22008 (dates and times), 22021 (text that is not UTF-8) or 0A000
  /// (others); the builder is then of no further use.
  virtual size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const = 0;
};

/// The codec between `column` and FieldOf(column).
std::unique_ptr<ValueCodec> MakeValueCodec(const PostgresColumn& column);

/// The encoder from `field` to ColumnOf(field). Throws what ColumnOf throws.
std::unique_ptr<ValueEncoder> MakeValueEncoder(const arrow::Field& field);

}  // namespace tidemark::columnar
