#include "columnar/json_text.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>
#include <arrow/util/formatting.h>
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"
#include "columnar/foreign_encoder.h"
#include "columnar/foreign_scalar.h"
#include "columnar/nested_array.h"

namespace tidemark::columnar {

namespace {

void AppendString(std::string_view text, std::string& out) {
  CheckText(text);
  constexpr unsigned char kFirstPrintable = 0x20;
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < kFirstPrintable) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void AppendBytes(std::string_view bytes, std::string& out) {
  out += "\"\\\\x";
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  out.push_back('"');
}

template <typename Float>
void AppendFloat(Float value, std::string& out) {
  if (!std::isfinite(value)) {
    throw base::Error(base::kFeatureNotSupported, fmt::format("{} has no value in jsonb", value));
  }
  out += fmt::format("{}", value);
}

// Dates and times by Arrow's own formatter, which is ISO 8601 with a blank for the T.
template <typename Type, typename ArrayType>
void AppendTime(const arrow::Array& array, int64_t row, std::string_view suffix,
                std::string& out) {
  std::string text;
  arrow::internal::StringFormatter<Type> format(array.type().get());
  format(static_cast<const ArrayType&>(array).Value(row),
         [&](std::string_view formatted) { text = formatted; });
  if (text.starts_with('<')) {
    throw base::Error(base::kDatetimeOverflow, "date or time out of range for JSON");
  }
  if (const size_t blank = text.find(' '); blank != std::string::npos) text[blank] = 'T';
  out += '"' + text + std::string(suffix) + '"';
}

std::string_view UnitOf(const arrow::DataType& type) {
  switch (static_cast<const arrow::DurationType&>(type).unit()) {
    case arrow::TimeUnit::SECOND:
      return "seconds";
    case arrow::TimeUnit::MILLI:
      return "milliseconds";
    case arrow::TimeUnit::MICRO:
      return "microseconds";
    default:
      return "nanoseconds";
  }
}

void AppendList(const arrow::Array& elements, Range range, std::string& out) {
  out.push_back('[');
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (i > range.begin) out.push_back(',');
    AppendJson(elements, i, out);
  }
  out.push_back(']');
}

void AppendStruct(const arrow::StructArray& array, int64_t row, std::string& out) {
  out.push_back('{');
  for (int i = 0; i < array.num_fields(); ++i) {
    if (i > 0) out.push_back(',');
    AppendString(array.struct_type()->field(i)->name(), out);
    out.push_back(':');
    AppendJson(*array.field(i), row, out);
  }
  out.push_back('}');
}

bool IsText(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) {
    return IsText(*static_cast<const arrow::DictionaryType&>(type).value_type());
  }
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING ||
         type.id() == arrow::Type::STRING_VIEW;
}

void AppendMap(const arrow::MapArray& array, int64_t row, std::string& out) {
  const bool object = IsText(*array.map_type()->key_type());
  std::set<std::string> keys;
  out.push_back(object ? '{' : '[');
  const int64_t begin = array.value_offset(row), end = begin + array.value_length(row);
  for (int64_t i = begin; i < end; ++i) {
    if (i > begin) out.push_back(',');
    std::string key;
    AppendJson(*array.keys(), i, key);
    if (object && !keys.insert(key).second) {
      throw base::Error(base::kFeatureNotSupported,
                        fmt::format("a map with the key {} twice has no value in jsonb", key));
    }
    out += object ? key + ":" : "{\"key\":" + key + ",\"value\":";
    AppendJson(*array.items(), i, out);
    if (!object) out.push_back('}');
  }
  out.push_back(object ? '}' : ']');
}

template <typename ArrayType>
void AppendInteger(const arrow::Array& array, int64_t row, std::string& out) {
  out += fmt::format("{}", static_cast<const ArrayType&>(array).Value(row));
}

template <typename ArrayType>
std::string_view View(const arrow::Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).GetView(row);
}

// True if `array` is a number and was appended.
bool AppendNumber(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case arrow::Type::INT8:
      AppendInteger<arrow::Int8Array>(array, row, out);
      return true;
    case arrow::Type::UINT8:
      AppendInteger<arrow::UInt8Array>(array, row, out);
      return true;
    case arrow::Type::INT16:
      AppendInteger<arrow::Int16Array>(array, row, out);
      return true;
    case arrow::Type::UINT16:
      AppendInteger<arrow::UInt16Array>(array, row, out);
      return true;
    case arrow::Type::INT32:
      AppendInteger<arrow::Int32Array>(array, row, out);
      return true;
    case arrow::Type::UINT32:
      AppendInteger<arrow::UInt32Array>(array, row, out);
      return true;
    case arrow::Type::INT64:
      AppendInteger<arrow::Int64Array>(array, row, out);
      return true;
    case arrow::Type::UINT64:
      AppendInteger<arrow::UInt64Array>(array, row, out);
      return true;
    case arrow::Type::HALF_FLOAT:
      AppendFloat(arrow::util::Float16::FromBits(
                      static_cast<const arrow::HalfFloatArray&>(array).Value(row))
                      .ToFloat(),
                  out);
      return true;
    case arrow::Type::FLOAT:
      AppendFloat(static_cast<const arrow::FloatArray&>(array).Value(row), out);
      return true;
    case arrow::Type::DOUBLE:
      AppendFloat(static_cast<const arrow::DoubleArray&>(array).Value(row), out);
      return true;
    case arrow::Type::DECIMAL32:
      out += static_cast<const arrow::Decimal32Array&>(array).FormatValue(row);
      return true;
    case arrow::Type::DECIMAL64:
      out += static_cast<const arrow::Decimal64Array&>(array).FormatValue(row);
      return true;
    case arrow::Type::DECIMAL128:
      out += static_cast<const arrow::Decimal128Array&>(array).FormatValue(row);
      return true;
    case arrow::Type::DECIMAL256:
      out += static_cast<const arrow::Decimal256Array&>(array).FormatValue(row);
      return true;
    default:
      return false;
  }
}

// True if `array` is text or bytes and was appended.
bool AppendStringOrBytes(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
      AppendString(View<arrow::StringArray>(array, row), out);
      return true;
    case arrow::Type::LARGE_STRING:
      AppendString(View<arrow::LargeStringArray>(array, row), out);
      return true;
    case arrow::Type::STRING_VIEW:
      AppendString(View<arrow::StringViewArray>(array, row), out);
      return true;
    case arrow::Type::BINARY:
      AppendBytes(View<arrow::BinaryArray>(array, row), out);
      return true;
    case arrow::Type::LARGE_BINARY:
      AppendBytes(View<arrow::LargeBinaryArray>(array, row), out);
      return true;
    case arrow::Type::BINARY_VIEW:
      AppendBytes(View<arrow::BinaryViewArray>(array, row), out);
      return true;
    case arrow::Type::FIXED_SIZE_BINARY:
      AppendBytes(View<arrow::FixedSizeBinaryArray>(array, row), out);
      return true;
    default:
      return false;
  }
}

// True if `array` is a date, a time or a span and was appended.
bool AppendDateOrTime(const arrow::Array& array, int64_t row, std::string& out) {
  switch (array.type_id()) {
    case arrow::Type::DATE32:
      AppendTime<arrow::Date32Type, arrow::Date32Array>(array, row, "", out);
      return true;
    case arrow::Type::DATE64:
      AppendTime<arrow::Date64Type, arrow::Date64Array>(array, row, "", out);
      return true;
    case arrow::Type::TIME32:
      AppendTime<arrow::Time32Type, arrow::Time32Array>(array, row, "", out);
      return true;
    case arrow::Type::TIME64:
      AppendTime<arrow::Time64Type, arrow::Time64Array>(array, row, "", out);
      return true;
    case arrow::Type::TIMESTAMP: {
      const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
      AppendTime<arrow::TimestampType, arrow::TimestampArray>(
          array, row, type.timezone().empty() ? "" : "+00:00", out);
      return true;
    }
    case arrow::Type::DURATION:
      out += fmt::format("{{\"{}\":{}}}", UnitOf(*array.type()),
                         static_cast<const arrow::DurationArray&>(array).Value(row));
      return true;
    case arrow::Type::INTERVAL_MONTHS:
      out += fmt::format("{{\"months\":{}}}",
                         static_cast<const arrow::MonthIntervalArray&>(array).Value(row));
      return true;
    case arrow::Type::INTERVAL_DAY_TIME: {
      const auto value = static_cast<const arrow::DayTimeIntervalArray&>(array).GetValue(row);
      out += fmt::format("{{\"days\":{},\"milliseconds\":{}}}", value.days, value.milliseconds);
      return true;
    }
    case arrow::Type::INTERVAL_MONTH_DAY_NANO: {
      const auto value = static_cast<const arrow::MonthDayNanoIntervalArray&>(array).GetValue(row);
      out += fmt::format("{{\"months\":{},\"days\":{},\"nanoseconds\":{}}}", value.months,
                         value.days, value.nanoseconds);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

void AppendJson(const arrow::Array& array, int64_t row, std::string& out) {
  if (IsNullAt(array, row)) {
    out += "null";
    return;
  }
  if (AppendNumber(array, row, out) || AppendStringOrBytes(array, row, out) ||
      AppendDateOrTime(array, row, out)) {
    return;
  }
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      out += static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
      return;
    case arrow::Type::STRUCT:
      return AppendStruct(static_cast<const arrow::StructArray&>(array), row, out);
    case arrow::Type::MAP:
      return AppendMap(static_cast<const arrow::MapArray&>(array), row, out);
    case arrow::Type::EXTENSION:
      return AppendJson(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, out);
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return AppendJson(*dictionary.dictionary(), dictionary.GetValueIndex(row), out);
    }
    case arrow::Type::RUN_END_ENCODED:
      return AppendJson(*static_cast<const arrow::RunEndEncodedArray&>(array).values(),
                        PhysicalRow(array, row), out);
    default:
      return AppendList(*ElementsOf(array), RangeOf(array, row), out);
  }
}

}  // namespace tidemark::columnar
