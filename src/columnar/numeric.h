// numeric's binary value: groups of four decimal digits, weight, sign and display scale. Reads it,
// writes it as text the way numeric_out does, and writes it from text or digits. Knows no Arrow.
// Source: PostgreSQL, numeric_send and numeric_recv in src/backend/utils/adt/numeric.c.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/bytes.h"

namespace tidemark::columnar {

/// A numeric value over bytes that it borrows. Either special (NaN, infinity) or
/// sign × Σ group(i) × kGroupEnd^(weight - i), shown with `scale` digits behind the point.
class Numeric {
 public:
  static constexpr int kGroupDigits = 4;
  static constexpr int kGroupEnd = 10000;

  /// Throws 22P03 for bytes that no server sends: wrong length, a group above 9999, groups of
  /// zeros at an end, digits behind the scale, a negative zero. So one value has one form.
  static Numeric Read(std::string_view value);

  /// "NaN", "Infinity", "-Infinity"; empty for a number.
  std::string_view special() const { return special_; }
  bool negative() const { return negative_; }
  int scale() const { return scale_; }
  int weight() const { return weight_; }
  /// Groups; 0 for zero. The first and the last are not 0.
  int groups() const { return static_cast<int>(bytes_.size() / sizeof(int16_t)); }
  int group(int at) const {
    return wire::LoadBigEndian<int16_t>(bytes_.data() + static_cast<size_t>(at) * sizeof(int16_t));
  }
  /// The power of ten of the last group's last digit.
  int last_exponent() const { return kGroupDigits * (weight_ - groups() + 1); }

  /// As numeric_out writes it, all digits of the scale included.
  std::string Text() const;

 private:
  void CheckForm() const;

  std::string_view special_;
  std::string_view bytes_;
  int weight_ = 0;
  int scale_ = 0;
  bool negative_ = false;
};

/// Decimal digits with the point behind the first `point` of them; `point` may lie outside.
struct DecimalDigits {
  bool negative = false;
  std::string_view digits;
  int64_t point = 0;
  int64_t scale = 0;  // to be shown; not less than the digits behind the point
};

/// Appends the binary value without a length. Throws 22003 for what numeric cannot hold.
void WriteNumeric(const DecimalDigits& value, std::string& out);

/// Appends the binary value of "12.50", "-1", "NaN", "Infinity" or "-Infinity"; the scale is the
/// number of digits behind the point. Throws 22P02 for any other text, exponents included.
void WriteNumericText(std::string_view text, std::string& out);

}  // namespace tidemark::columnar
