#include "source/cursor_value.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/error.h"
#include "columnar/arrow_status.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kInvalidText{"22P02"};

base::Error NoCursor(const arrow::DataType& type) {
  return base::Error(base::kFeatureNotSupported,
                     fmt::format("type {} cannot be a cursor or its key", type.ToString()));
}

std::shared_ptr<arrow::Scalar> ScalarOf(const std::shared_ptr<arrow::DataType>& type,
                                        const std::string& text) {
  auto scalar = arrow::Scalar::Parse(type, text);
  if (!scalar.ok()) {
    throw base::Error(kInvalidText,
                      fmt::format("\"{}\" is no value of type {}", text, type->ToString()));
  }
  return *scalar;
}

int64_t Seconds(std::string_view unit) {
  if (unit.ends_with('s')) unit.remove_suffix(1);
  if (unit == "second") return 1;
  if (unit == "minute") return 60;
  if (unit == "hour") return 3600;
  if (unit == "day") return 86400;
  return 0;
}

int64_t PerSecond(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return 1;
    case arrow::TimeUnit::MILLI:
      return 1000;
    case arrow::TimeUnit::MICRO:
      return 1'000'000;
    default:
      return 1'000'000'000;
  }
}

// `overlap` in the cursor's own integer steps.
int64_t StepsOf(const arrow::DataType& type, const std::string& overlap) {
  int64_t number = 0;
  const char* const end = overlap.data() + overlap.size();
  const auto [at, error] = std::from_chars(overlap.data(), end, number);
  std::string_view unit(at, static_cast<size_t>(end - at));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const bool integer = arrow::is_integer(type.id());
  if (error == std::errc() && number >= 0) {
    if (integer && unit.empty()) return number;
    if (type.id() == arrow::Type::TIMESTAMP && Seconds(unit) > 0) {
      return number * Seconds(unit) *
             PerSecond(static_cast<const arrow::TimestampType&>(type).unit());
    }
    if (type.id() == arrow::Type::DATE32 && unit.starts_with("day")) return number;
  }
  if (!integer && type.id() != arrow::Type::TIMESTAMP && type.id() != arrow::Type::DATE32) {
    throw base::Error(
        base::kFeatureNotSupported,
        fmt::format("a cursor of type {} cannot have an overlap", type.ToString()));
  }
  throw base::Error(base::kInvalidParameter,
                    fmt::format("\"{}\" is no overlap of a cursor of type {}", overlap,
                                type.ToString()));
}

template <typename ScalarType>
std::shared_ptr<arrow::Scalar> Less(const arrow::Scalar& scalar, int64_t steps) {
  const auto& typed = static_cast<const ScalarType&>(scalar);
  using Value = typename ScalarType::ValueType;
  return std::make_shared<ScalarType>(static_cast<Value>(typed.value - static_cast<Value>(steps)),
                                      scalar.type);
}

std::shared_ptr<arrow::Scalar> Before(const arrow::Scalar& scalar, int64_t steps) {
  switch (scalar.type->id()) {
    case arrow::Type::INT16:
      return Less<arrow::Int16Scalar>(scalar, steps);
    case arrow::Type::INT32:
      return Less<arrow::Int32Scalar>(scalar, steps);
    case arrow::Type::INT64:
      return Less<arrow::Int64Scalar>(scalar, steps);
    case arrow::Type::DATE32:
      return Less<arrow::Date32Scalar>(scalar, steps);
    case arrow::Type::TIMESTAMP:
      return Less<arrow::TimestampScalar>(scalar, steps);
    default:
      throw NoCursor(*scalar.type);
  }
}

}  // namespace

std::string CursorText(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) {
    throw base::Error(base::kNullValueNotAllowed, "NULL in a cursor or key column");
  }
  const auto scalar = columnar::Take(array.GetScalar(row));
  std::string text = scalar->ToString();
  const auto again = arrow::Scalar::Parse(scalar->type, text);
  if (!again.ok() || !(*again)->Equals(*scalar)) throw NoCursor(*scalar->type);
  return text;
}

std::shared_ptr<arrow::Array> CursorArray(const std::shared_ptr<arrow::DataType>& type,
                                          const std::string& text) {
  return columnar::Take(arrow::MakeArrayFromScalar(*ScalarOf(type, text), 1));
}

std::shared_ptr<arrow::Array> CursorArrayBefore(const std::shared_ptr<arrow::DataType>& type,
                                                const std::string& text,
                                                const std::string& overlap) {
  const auto scalar = ScalarOf(type, text);
  return columnar::Take(
      arrow::MakeArrayFromScalar(*Before(*scalar, StepsOf(*type, overlap)), 1));
}

}  // namespace tidemark::source
