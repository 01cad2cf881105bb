#include "columnar/numeric.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace tidemark::columnar {

namespace {

constexpr base::SqlState kNumericOutOfRange{"22003"};
constexpr base::SqlState kInvalidText{"22P02"};

constexpr int kGroupDigits = Numeric::kGroupDigits;
constexpr int kPowers[kGroupDigits] = {1, 10, 100, 1000};
constexpr uint16_t kPositive = 0x0000;
constexpr uint16_t kNegative = 0x4000;
constexpr int kScaleMax = 0x3fff;

// Besides its sign an infinity has a scale of 32, which means nothing but is always sent.
struct Special {
  std::string_view text;
  uint16_t sign;
  uint16_t scale;
};
constexpr Special kSpecials[] = {
    {"NaN", 0xc000, 0}, {"Infinity", 0xd000, 0x20}, {"-Infinity", 0xf000, 0x20}};

bool AllDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void WriteHeader(int groups, int weight, uint16_t sign, int scale, std::string& out) {
  wire::ByteWriter writer(out);
  writer.WriteU16(static_cast<uint16_t>(groups));
  writer.WriteI16(static_cast<int16_t>(weight));
  writer.WriteU16(sign);
  writer.WriteU16(static_cast<uint16_t>(scale));
}

}  // namespace

Numeric Numeric::Read(std::string_view value) {
  wire::ByteReader in(value, base::kInvalidBinary);
  const size_t groups = in.ReadU16();
  Numeric numeric;
  numeric.weight_ = in.ReadI16();
  const uint16_t sign = in.ReadU16();
  numeric.scale_ = in.ReadU16();
  numeric.bytes_ = in.ReadBytes(groups * sizeof(int16_t));
  in.ExpectEnd();
  for (const Special& special : kSpecials) {
    if (sign != special.sign) continue;
    if (groups != 0 || numeric.weight_ != 0 || numeric.scale_ != special.scale) break;
    numeric.special_ = special.text;
    return numeric;
  }
  if ((sign != kPositive && sign != kNegative) || numeric.scale_ > kScaleMax) {
    throw base::Error(base::kInvalidBinary,
                      fmt::format("numeric with sign 0x{:04x} and scale {} in a binary value", sign,
                                  numeric.scale_));
  }
  numeric.negative_ = sign == kNegative;
  numeric.CheckForm();
  return numeric;
}

void Numeric::CheckForm() const {
  bool sound = groups() > 0 || (weight_ == 0 && !negative_);
  for (int i = 0; i < groups(); ++i) sound &= group(i) >= 0 && group(i) < kGroupEnd;
  if (groups() > 0) {
    const int last = group(groups() - 1);
    const int unseen = std::max(0, -(last_exponent() + scale_));  // digits behind the scale
    sound &= group(0) != 0 && last != 0;
    sound &= unseen < kGroupDigits && last % kPowers[unseen % kGroupDigits] == 0;
  }
  if (!sound) {
    throw base::Error(base::kInvalidBinary, "numeric in a binary value is not in its normal form");
  }
}

std::string Numeric::Text() const {
  if (!special_.empty()) return std::string(special_);
  std::string text;
  text.reserve(static_cast<size_t>(std::max(weight_ + 1, 1) * kGroupDigits + scale_ + 2));
  if (negative_) text += '-';
  const auto append_group = [&](int at) {
    int rest = at >= 0 && at < groups() ? group(at) : 0;
    char digits[kGroupDigits];
    for (int i = kGroupDigits - 1; i >= 0; --i, rest /= 10) {
      digits[i] = static_cast<char>('0' + rest % 10);
    }
    text.append(digits, kGroupDigits);
  };
  if (weight_ < 0 || groups() == 0) {
    text += '0';
  } else {
    text += std::to_string(group(0));  // not 0
    for (int at = 1; at <= weight_; ++at) append_group(at);
  }
  if (scale_ > 0) {
    text += '.';
    const size_t end = text.size() + static_cast<size_t>(scale_);
    for (int at = weight_ + 1; text.size() < end; ++at) append_group(at);
    text.resize(end);
  }
  return text;
}

void WriteNumeric(const DecimalDigits& value, std::string& out) {
  std::string_view digits = value.digits;
  int64_t point = value.point;
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.remove_prefix(zeros);
  point -= static_cast<int64_t>(zeros);
  digits = digits.substr(0, digits.find_last_not_of('0') + 1);
  if (value.scale < 0 || value.scale > kScaleMax) {
    throw base::Error(kNumericOutOfRange,
                      fmt::format("numeric of scale {} out of range", value.scale));
  }
  const int scale = static_cast<int>(value.scale);
  if (digits.empty()) return WriteHeader(0, 0, kPositive, scale, out);

  // The first group takes the digits up to the next multiple of four before the point.
  const int64_t weight = (point > 0 ? point + kGroupDigits - 1 : point) / kGroupDigits - 1;
  const int64_t lead = (weight + 1) * kGroupDigits - point;
  const auto count = static_cast<int64_t>(digits.size());
  const int64_t groups = (lead + count + kGroupDigits - 1) / kGroupDigits;
  if (weight > std::numeric_limits<int16_t>::max() ||
      weight < std::numeric_limits<int16_t>::min() ||
      groups > std::numeric_limits<uint16_t>::max()) {
    throw base::Error(kNumericOutOfRange, "numeric with too many digits out of range");
  }
  WriteHeader(static_cast<int>(groups), static_cast<int>(weight),
              value.negative ? kNegative : kPositive, scale, out);
  wire::ByteWriter writer(out);
  for (int64_t at = -lead; at < count; at += kGroupDigits) {
    int group = 0;
    for (int64_t i = at; i < at + kGroupDigits; ++i) {
      const bool inside = i >= 0 && i < count;
      group = group * 10 + (inside ? digits[static_cast<size_t>(i)] - '0' : 0);
    }
    writer.WriteI16(static_cast<int16_t>(group));
  }
}

void WriteNumericText(std::string_view text, std::string& out) {
  for (const Special& special : kSpecials) {
    if (text == special.text) return WriteHeader(0, 0, special.sign, special.scale, out);
  }
  const bool negative = text.starts_with('-');
  const std::string_view number = text.substr(negative ? 1 : 0);
  const size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  const std::string_view fraction = number.substr(std::min(point + 1, number.size()));
  if (whole.empty() || !AllDigits(whole) || !AllDigits(fraction)) {
    constexpr size_t kShown = 40;
    throw base::Error(kInvalidText,
                      fmt::format("invalid text for numeric: \"{}\"", text.substr(0, kShown)));
  }
  std::string digits(whole);
  digits += fraction;
  WriteNumeric({.negative = negative,
                .digits = digits,
                .point = static_cast<int64_t>(whole.size()),
                .scale = static_cast<int64_t>(fraction.size())},
               out);
}

}  // namespace tidemark::columnar
