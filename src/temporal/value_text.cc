#include "temporal/value_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "columnar/numeric.h"
#include "columnar/type_oid.h"
#include "wire/bytes.h"

namespace tidemark::temporal {

namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
constexpr int32_t kEpochDays = 10'957;  // from 1970-01-01 to 2000-01-01
constexpr int kFractionDigits = 6;
// Modifiers of numeric, varchar and bpchar begin at 4.
constexpr int kModifierOffset = 4;
constexpr size_t kUuidBytes = 16;

template <typename Int>
void AppendInt(Int value, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// At least so many digits.
void AppendPadded(int64_t value, int width, std::string& out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  for (auto missing = width - (end - digits); missing > 0; --missing) out += '0';
  out.append(digits, end);
}

// 0 … 99.
void AppendTwoDigits(int64_t value, std::string& out) {
  const char digits[2] = {static_cast<char>('0' + value / 10), static_cast<char>('0' + value % 10)};
  out.append(digits, sizeof digits);
}

void AppendHex(std::string_view bytes, std::string& out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    out += kDigits[value >> 4];
    out += kDigits[value & 15];
  }
}

// Of days from 2000-01-01; true for a year before Christ, which is said at the very end.
bool AppendDate(int64_t days, std::string& out) {
  // chrono's years end at 32767.
  constexpr int64_t kCycleDays = 146'097, kCycleYears = 400;
  const int64_t cycles = days / kCycleDays;
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days(days - cycles * kCycleDays + kEpochDays)}};
  const int64_t year = static_cast<int>(date.year()) + cycles * kCycleYears;
  const bool before = year <= 0;
  AppendPadded(before ? 1 - year : year, 4, out);
  out += '-';
  AppendTwoDigits(static_cast<unsigned>(date.month()), out);
  out += '-';
  AppendTwoDigits(static_cast<unsigned>(date.day()), out);
  return before;
}

void AppendTime(int64_t microseconds, std::string& out) {
  const int64_t seconds = microseconds / kSecond;
  AppendTwoDigits(seconds / 3600, out);
  out += ':';
  AppendTwoDigits(seconds / 60 % 60, out);
  out += ':';
  AppendTwoDigits(seconds % 60, out);
  int64_t fraction = microseconds % kSecond;
  if (fraction == 0) return;
  int digits = kFractionDigits;
  for (; fraction % 10 == 0; --digits) fraction /= 10;
  out += '.';
  AppendPadded(fraction, digits, out);
}

template <typename Int>
bool AppendInfinity(Int value, std::string& out) {
  if (value == std::numeric_limits<Int>::max()) return out += "infinity", true;
  if (value == std::numeric_limits<Int>::min()) return out += "-infinity", true;
  return false;
}

// A column of fewer digits rounds what it is given.
bool FitsFraction(const DatasetColumn& column, int64_t microseconds) {
  if (column.type_modifier < 0) return true;
  int64_t step = 1;
  for (int digits = column.type_modifier; digits < kFractionDigits; ++digits) step *= 10;
  return microseconds % step == 0;
}

bool AppendTimestamp(const DatasetColumn& column, int64_t microseconds, std::string& out) {
  if (AppendInfinity(microseconds, out)) return true;
  if (!FitsFraction(column, microseconds)) return false;
  int64_t days = microseconds / kDay;
  if (microseconds % kDay < 0) --days;
  const bool before = AppendDate(days, out);
  out += ' ';
  AppendTime(microseconds - days * kDay, out);
  if (column.source_type == columnar::kTimestamptz) out += "+00";
  if (before) out += " BC";
  return true;
}

// The shortest digits that give the number again, written as PostgreSQL does. It does not take
// digits that lie exactly between two numbers; from `certain_below` on there are such.
template <typename Float>
bool AppendFloat(Float value, Float certain_below, std::string& out) {
  if (std::isnan(value)) return out += "NaN", true;
  if (std::isinf(value)) return out += value < 0 ? "-Infinity" : "Infinity", true;
  if (std::abs(value) >= certain_below) return false;
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  std::string_view shown(text, static_cast<size_t>(end - text));
  if (shown.starts_with('-')) {
    out += '-';
    shown.remove_prefix(1);
  }
  const size_t e = shown.find('e');
  int exponent = 0;
  const char* const from = shown.data() + e + (shown[e + 1] == '+' ? 2 : 1);
  std::from_chars(from, end, exponent);
  std::string digits(shown.substr(0, 1));
  if (e > 1) digits += shown.substr(2, e - 2);
  const int exponent_end = std::numeric_limits<Float>::digits10;
  const auto count = static_cast<int>(digits.size());
  if (exponent >= -4 && exponent < exponent_end) {
    if (exponent < 0) {
      out += "0.";
      out.append(static_cast<size_t>(-exponent - 1), '0');
      out += digits;
    } else if (count <= exponent + 1) {
      out += digits;
      out.append(static_cast<size_t>(exponent + 1 - count), '0');
    } else {
      out.append(digits, 0, static_cast<size_t>(exponent + 1));
      out += '.';
      out.append(digits, static_cast<size_t>(exponent + 1));
    }
    return true;
  }
  out += digits.substr(0, 1);
  if (count > 1) out += '.' + digits.substr(1);
  out += exponent < 0 ? "e-" : "e+";
  AppendPadded(std::abs(exponent), 2, out);
  return true;
}

size_t Characters(std::string_view utf8) {
  return static_cast<size_t>(
      std::ranges::count_if(utf8, [](char c) { return (c & 0xc0) != 0x80; }));
}

// A column of a limited length may cut blanks off.
bool FitsLength(const DatasetColumn& column, std::string_view text) {
  if (column.type_modifier < kModifierOffset) return true;
  const auto most = static_cast<size_t>(column.type_modifier - kModifierOffset);
  return text.size() <= most || Characters(text) <= most;
}

bool AppendNumeric(const DatasetColumn& column, std::string_view value, std::string& out) {
  const auto numeric = columnar::Numeric::Read(value);
  constexpr int kScaleMask = 0x7ff;
  if (column.type_modifier >= kModifierOffset && numeric.special().empty() &&
      numeric.scale() != ((column.type_modifier - kModifierOffset) & kScaleMask)) {
    return false;
  }
  out += numeric.Text();
  return true;
}

}  // namespace

bool HasValueText(const DatasetColumn& column) {
  if (!column.binary) return false;
  switch (column.source_type) {
    case columnar::kBool:
    case columnar::kBytea:
    case columnar::kInt2:
    case columnar::kInt4:
    case columnar::kInt8:
    case columnar::kFloat4:
    case columnar::kFloat8:
    case columnar::kNumeric:
    case columnar::kText:
    case columnar::kVarchar:
    case columnar::kBpchar:
    case columnar::kJson:
    case columnar::kDate:
    case columnar::kTime:
    case columnar::kTimestamp:
    case columnar::kTimestamptz:
    case columnar::kUuid:
      return true;
    default:
      return false;
  }
}

bool AppendValueText(const DatasetColumn& column, std::string_view value, std::string& out) {
  wire::ByteReader in(value, base::kInvalidBinary);
  switch (column.source_type) {
    case columnar::kBool:
      out += in.ReadU8() != 0 ? "true" : "false";
      return true;
    case columnar::kInt2:
      AppendInt(in.ReadI16(), out);
      return true;
    case columnar::kInt4:
      AppendInt(in.ReadI32(), out);
      return true;
    case columnar::kInt8:
      AppendInt(in.ReadI64(), out);
      return true;
    case columnar::kFloat4:
      return AppendFloat(std::bit_cast<float>(in.ReadU32()), 0x1p21F, out);
    case columnar::kFloat8:
      return AppendFloat(std::bit_cast<double>(in.ReadU64()), 0x1p52, out);
    case columnar::kNumeric:
      return AppendNumeric(column, value, out);
    case columnar::kBpchar:
      value = value.substr(0, value.find_last_not_of(' ') + 1);
      [[fallthrough]];
    case columnar::kText:
    case columnar::kVarchar:
    case columnar::kJson:
      if (!FitsLength(column, value)) return false;
      out += value;
      return true;
    case columnar::kBytea:
      out += "\\x";
      AppendHex(value, out);
      return true;
    case columnar::kDate: {
      const int32_t days = in.ReadI32();
      if (!AppendInfinity(days, out) && AppendDate(days, out)) out += " BC";
      return true;
    }
    case columnar::kTime: {
      const int64_t time = in.ReadI64();
      if (!FitsFraction(column, time)) return false;
      AppendTime(time, out);
      return true;
    }
    case columnar::kTimestamp:
    case columnar::kTimestamptz:
      return AppendTimestamp(column, in.ReadI64(), out);
    case columnar::kUuid: {
      const std::string_view bytes = in.ReadBytes(kUuidBytes);
      size_t at = 0;
      for (const size_t part : {4, 2, 2, 2, 6}) {
        if (at > 0) out += '-';
        AppendHex(bytes.substr(at, part), out);
        at += part;
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace tidemark::temporal
