// Values of a cursor or key column as exact text and back, for sources that speak Arrow. A type
// whose text does not read back as the same value is no cursor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace arrow {
class Array;
class DataType;
}  // namespace arrow

namespace tidemark::source {

/// The exact text of the value at `row`. Throws 22004 for NULL, 0A000 for a type without exact
/// text.
std::string CursorText(const arrow::Array& array, int64_t row);

/// An array of one value of `type`. Throws 22P02 for text that is not one.
std::shared_ptr<arrow::Array> CursorArray(const std::shared_ptr<arrow::DataType>& type,
                                          const std::string& text);

/// The value that lies `overlap` before `text`: integers by a number, dates and timestamps by a
/// number and a unit ("5 minutes"). Throws 0A000 for other types, 22023 for other overlaps.
std::shared_ptr<arrow::Array> CursorArrayBefore(const std::shared_ptr<arrow::DataType>& type,
                                                const std::string& text,
                                                const std::string& overlap);

}  // namespace tidemark::source
