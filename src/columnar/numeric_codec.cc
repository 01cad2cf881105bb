#include "columnar/numeric_codec.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/util/decimal.h>
#include <fmt/format.h>

#include "base/error.h"
#include "columnar/arrow_status.h"
#include "columnar/numeric.h"

namespace tidemark::columnar {

namespace {

constexpr int kInt64Digits = 18;

// The groups as one integer whose last digit stands for 10^-scale. The caller has checked that
// Integer has room and that the value has no digits behind the scale.
template <typename Integer>
Integer Unscaled(const Numeric& numeric, int scale) {
  if (numeric.groups() == 0) return Integer(0);
  Integer value(0);
  for (int i = 0; i + 1 < numeric.groups(); ++i) {
    value = value * Integer(Numeric::kGroupEnd) + Integer(numeric.group(i));
  }
  // The last group may reach behind the scale, where its digits are zeros.
  int last = numeric.group(numeric.groups() - 1);
  int last_end = Numeric::kGroupEnd;
  int shift = numeric.last_exponent() + scale;
  for (; shift < 0; ++shift) {
    last /= 10;
    last_end /= 10;
  }
  value = value * Integer(last_end) + Integer(last);
  for (; shift > 0; --shift) value = value * Integer(10);
  return numeric.negative() ? Integer(-value) : value;
}

// Digits of the unscaled integer; 0 for zero.
int DigitCount(const Numeric& numeric, int scale) {
  if (numeric.groups() == 0) return 0;
  int count = numeric.weight() * Numeric::kGroupDigits + scale;
  for (int first = numeric.group(0); first > 0; first /= 10) ++count;
  return count;
}

template <typename Type>
class DecimalCodec final : public ValueCodec {
  using Traits = arrow::TypeTraits<Type>;
  using Value = typename Traits::BuilderType::ValueType;

 public:
  explicit DecimalCodec(const arrow::DecimalType& type)
      : precision_(type.precision()), scale_(type.scale()) {}

  size_t Decode(std::string_view bytes, arrow::ArrayBuilder& builder) const override {
    const Numeric numeric = Numeric::Read(bytes);
    if (!numeric.special().empty()) throw Unrepresentable(numeric.special());
    const int digits = DigitCount(numeric, scale_);
    if (numeric.scale() != scale_ || digits > precision_) {
      throw Unrepresentable(fmt::format("a value of {} digits and scale {}",
                                        digits + numeric.scale() - scale_, numeric.scale()));
    }
    const Value value = digits <= kInt64Digits ? Value(Unscaled<int64_t>(numeric, scale_))
                                               : Unscaled<Value>(numeric, scale_);
    Check(static_cast<typename Traits::BuilderType&>(builder).Append(value));
    return sizeof value;
  }

  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto& decimals = static_cast<const typename Traits::ArrayType&>(array);
    const std::string text = Value(decimals.GetValue(row)).ToIntegerString();
    const bool negative = text.starts_with('-');
    const std::string_view digits = std::string_view(text).substr(negative ? 1 : 0);
    WriteNumeric({.negative = negative,
                  .digits = digits,
                  .point = static_cast<int64_t>(digits.size()) - scale_,
                  .scale = scale_},
                 out);
  }

 private:
  base::Error Unrepresentable(std::string_view what) const {
    return base::Error(base::kFeatureNotSupported,
                       fmt::format("{} has no value in decimal({},{})", what, precision_, scale_))
        .Hint("Carry the column as PostgreSQL's binary value.");
  }

  int precision_, scale_;
};

class NumericTextCodec final : public ValueCodec {
 public:
  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    const std::string text = Numeric::Read(value).Text();
    Check(static_cast<arrow::StringBuilder&>(builder).Append(text));
    return text.size();
  }
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    WriteNumericText(static_cast<const arrow::StringArray&>(array).GetView(row), out);
  }
};

}  // namespace

std::unique_ptr<ValueCodec> MakeNumericCodec(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::DECIMAL128:
      return std::make_unique<DecimalCodec<arrow::Decimal128Type>>(
          static_cast<const arrow::DecimalType&>(type));
    case arrow::Type::DECIMAL256:
      return std::make_unique<DecimalCodec<arrow::Decimal256Type>>(
          static_cast<const arrow::DecimalType&>(type));
    default:
      return std::make_unique<NumericTextCodec>();
  }
}

}  // namespace tidemark::columnar
