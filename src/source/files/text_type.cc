#include "source/files/text_type.h"

#include <arrow/type.h>
#include <arrow/util/value_parsing.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "columnar/foreign_type.h"
#include "columnar/type_oid.h"

namespace tidemark::source {

namespace {

constexpr base::SqlState kNumericOutOfRange{"22003"};
constexpr int kExponentMax = 1000;
constexpr size_t kDateSize = 10;       // 2026-11-28
constexpr size_t kTimestampSize = 19;  // 2026-11-28 12:00:00

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

bool FitsInt64(std::string_view text) {
  int64_t value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool IsNegativeZero(std::string_view number) {
  return number.starts_with('-') && number.find_first_not_of("-0.") == std::string_view::npos;
}

bool IsDate(std::string_view text) {
  arrow::Date32Type::c_type value;
  return text.size() == kDateSize && arrow::internal::ParseValue<arrow::Date32Type>(
                                         text.data(), text.size(), &value);
}

// Down to microseconds, so that every value fits PostgreSQL's.
bool IsTimestamp(std::string_view text, bool* with_zone) {
  int64_t value;
  return text.size() >= kTimestampSize &&
         arrow::internal::ParseTimestampISO8601(text.data(), text.size(), arrow::TimeUnit::MICRO,
                                                &value, with_zone);
}

columnar::PostgresColumn Column(const std::string& name, uint32_t type) {
  return {.name = name, .type = type, .type_sql = columnar::TypeSqlOf(type, -1)};
}

}  // namespace

bool IsPlainNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  if (!IsDigits(whole) || (whole.size() > 1 && whole.front() == '0')) return false;
  return point == text.size() || IsDigits(text.substr(point + 1));
}

std::string PlainNumber(std::string_view text) {
  const size_t e = text.find_first_of("eE");
  if (e == std::string_view::npos) return std::string(text);
  std::string_view exponent_text = text.substr(e + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(
      exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (error != std::errc() || exponent > kExponentMax || exponent < -kExponentMax) {
    throw base::Error(kNumericOutOfRange, fmt::format("number {} out of range", text));
  }
  const bool negative = text.starts_with('-');
  const std::string_view mantissa = text.substr(negative ? 1 : 0, e - (negative ? 1 : 0));
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string digits(mantissa.substr(0, point));
  if (point < mantissa.size()) digits += mantissa.substr(point + 1);
  int64_t place = static_cast<int64_t>(point) + exponent;  // digits before the point
  if (place < 1) {
    digits.insert(0, static_cast<size_t>(1 - place), '0');
    place = 1;
  }
  if (place > static_cast<int64_t>(digits.size())) {
    digits.append(static_cast<size_t>(place) - digits.size(), '0');
  }
  std::string whole = digits.substr(0, static_cast<size_t>(place));
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  const std::string fraction = digits.substr(static_cast<size_t>(place));
  return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
}

void TextType::SeeText(std::string_view value) {
  if ((seen_ & kTextBit) != 0) return;  // nothing can change it any more
  bool with_zone = false;
  if (value == "true" || value == "false") {
    seen_ |= kBoolBit;
  } else if (IsPlainNumber(value) && !IsNegativeZero(value)) {
    seen_ |= FitsInt64(value) ? kIntBit : kNumericBit;
  } else if (IsDate(value)) {
    seen_ |= kDateBit;
  } else if (IsTimestamp(value, &with_zone)) {
    seen_ |= with_zone ? kTimestamptzBit : kTimestampBit;
  } else {
    seen_ |= kTextBit;
  }
}

void TextType::SeeNumber(std::string_view text) {
  seen_ |= FitsInt64(text) ? kIntBit : kNumericBit;
}

columnar::PostgresColumn TextType::CsvColumn(const std::string& name) const {
  switch (seen_) {
    case kBoolBit:
      return Column(name, columnar::kBool);
    case kIntBit:
      return Column(name, columnar::kInt8);
    case kNumericBit:
    case kIntBit | kNumericBit:
      return Column(name, columnar::kNumeric);
    case kDateBit:
      return Column(name, columnar::kDate);
    case kTimestampBit:
      return Column(name, columnar::kTimestamp);
    case kTimestamptzBit:
      return Column(name, columnar::kTimestamptz);
    default:
      return Column(name, columnar::kText);
  }
}

columnar::PostgresColumn TextType::JsonColumn(const std::string& name) const {
  switch (seen_) {
    case 0:
    case kTextBit:
      return Column(name, columnar::kText);
    case kBoolBit:
      return Column(name, columnar::kBool);
    case kIntBit:
      return Column(name, columnar::kInt8);
    case kNumericBit:
    case kIntBit | kNumericBit:
      return Column(name, columnar::kNumeric);
    default:
      return Column(name, columnar::kJson);
  }
}

TextType& TextTypes::At(const std::string& name) {
  const auto [at, is_new] = types.try_emplace(name);
  if (is_new) names.push_back(name);
  return at->second;
}

}  // namespace tidemark::source
