// Any Arrow value as JSON text, for what becomes jsonb: structs, maps, lists of lists. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace arrow {
class Array;
}  // namespace arrow

namespace tidemark::columnar {

/// Appends the value at `row`, "null" if it is NULL. A struct is an object with all its fields; a
/// map with text keys an object, any other map an array of {"key", "value"}; integers and decimals
/// are numbers with all their digits, floats the shortest number that reads back the same; bytes
/// are "\x" and hex digits; dates and times ISO 8601, all digits of their unit; durations and
/// intervals their parts by name. Throws 0A000 for NaN and infinities and for a key that stands
/// twice in a map, 22008 for dates and times beyond the years 0 to 9999, 22021 as CheckText does.
void AppendJson(const arrow::Array& array, int64_t row, std::string& out);

}  // namespace tidemark::columnar
