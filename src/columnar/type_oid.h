// The OIDs of PostgreSQL's own types that have an Arrow type of their own. They are the same in
// every server. Not a catalog: a type of any other OID is carried as the bytes that it is sent as.
// Source: PostgreSQL, src/include/catalog/pg_type.dat.
#pragma once

#include <cstdint>

namespace tidemark::columnar {

inline constexpr uint32_t kBool = 16;
inline constexpr uint32_t kBytea = 17;
inline constexpr uint32_t kName = 19;
inline constexpr uint32_t kInt8 = 20;
inline constexpr uint32_t kInt2 = 21;
inline constexpr uint32_t kInt4 = 23;
inline constexpr uint32_t kText = 25;
inline constexpr uint32_t kJson = 114;
inline constexpr uint32_t kFloat4 = 700;
inline constexpr uint32_t kFloat8 = 701;
inline constexpr uint32_t kBpchar = 1042;
inline constexpr uint32_t kVarchar = 1043;
inline constexpr uint32_t kDate = 1082;
inline constexpr uint32_t kTime = 1083;
inline constexpr uint32_t kTimestamp = 1114;
inline constexpr uint32_t kTimestamptz = 1184;
inline constexpr uint32_t kInterval = 1186;
inline constexpr uint32_t kNumeric = 1700;
inline constexpr uint32_t kUuid = 2950;
inline constexpr uint32_t kJsonb = 3802;

/// A type of the list above and the type of its arrays.
struct ArrayType {
  uint32_t element;
  uint32_t array;
};
inline constexpr ArrayType kArrayTypes[] = {
    {kBool, 1000},        {kBytea, 1001},    {kName, 1003},    {kInt8, 1016},   {kInt2, 1005},
    {kInt4, 1007},        {kText, 1009},     {kJson, 199},     {kFloat4, 1021}, {kFloat8, 1022},
    {kBpchar, 1014},      {kVarchar, 1015},  {kDate, 1182},    {kTime, 1183},   {kTimestamp, 1115},
    {kTimestamptz, 1185}, {kInterval, 1187}, {kNumeric, 1231}, {kUuid, 2951},   {kJsonb, 3807},
};

/// The element type of `array`; 0 if it is no array of a type of the list above.
constexpr uint32_t ElementOf(uint32_t array) {
  for (const ArrayType& type : kArrayTypes) {
    if (type.array == array) return type.element;
  }
  return 0;
}

/// The type of arrays of `element`; 0 if `element` is not in the list above.
constexpr uint32_t ArrayOf(uint32_t element) {
  for (const ArrayType& type : kArrayTypes) {
    if (type.element == element) return type.array;
  }
  return 0;
}

}  // namespace tidemark::columnar
