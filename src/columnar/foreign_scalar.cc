#include "columnar/foreign_scalar.h"

#include <arrow/array.h>
#include <arrow/type.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <arrow/util/utf8.h>
#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "base/error.h"
#include "columnar/numeric.h"
#include "columnar/type_oid.h"
#include "wire/bytes.h"

namespace tidemark::columnar {

namespace {

// An encoder around a function object that gets the typed array.
template <typename ArrayType, typename Write>
class FunctionEncoder final : public ValueEncoder {
 public:
  explicit FunctionEncoder(Write write) : write_(std::move(write)) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    write_(static_cast<const ArrayType&>(array), row, out);
  }

 private:
  Write write_;
};

template <typename ArrayType, typename Write>
std::unique_ptr<ValueEncoder> Encoder(Write write) {
  return std::make_unique<FunctionEncoder<ArrayType, Write>>(std::move(write));
}

// An integer as the PostgreSQL integer that holds all of its values.
template <typename ArrayType, typename Target>
std::unique_ptr<ValueEncoder> Integer() {
  return Encoder<ArrayType>([](const ArrayType& array, int64_t row, std::string& out) {
    char bytes[sizeof(Target)];
    wire::StoreBigEndian(bytes, static_cast<Target>(array.Value(row)));
    out.append(bytes, sizeof bytes);
  });
}

template <typename ArrayType>
std::unique_ptr<ValueEncoder> Text() {
  arrow::util::InitializeUTF8();
  return Encoder<ArrayType>([](const ArrayType& array, int64_t row, std::string& out) {
    const std::string_view text = array.GetView(row);
    CheckText(text);
    out += text;
  });
}

template <typename ArrayType>
std::unique_ptr<ValueEncoder> Bytes() {
  return Encoder<ArrayType>(
      [](const ArrayType& array, int64_t row, std::string& out) { out += array.GetView(row); });
}

template <typename ArrayType>
std::unique_ptr<ValueEncoder> NumericText() {
  return Encoder<ArrayType>([](const ArrayType& array, int64_t row, std::string& out) {
    WriteNumericText(array.GetView(row), out);
  });
}

template <typename ArrayType, typename Value>
std::unique_ptr<ValueEncoder> Decimal(const arrow::DataType& type) {
  const int scale = static_cast<const arrow::DecimalType&>(type).scale();
  return Encoder<ArrayType>([scale](const ArrayType& array, int64_t row, std::string& out) {
    const std::string text = Value(array.GetValue(row)).ToIntegerString();
    const bool negative = text.starts_with('-');
    const std::string_view digits = std::string_view(text).substr(negative ? 1 : 0);
    WriteNumeric({.negative = negative,
                  .digits = digits,
                  .point = static_cast<int64_t>(digits.size()) - scale,
                  .scale = scale > 0 ? scale : 0},
                 out);
  });
}

std::unique_ptr<ValueEncoder> MakeDecimalEncoder(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::DECIMAL32:
      return Decimal<arrow::Decimal32Array, arrow::Decimal32>(type);
    case arrow::Type::DECIMAL64:
      return Decimal<arrow::Decimal64Array, arrow::Decimal64>(type);
    case arrow::Type::DECIMAL128:
      return Decimal<arrow::Decimal128Array, arrow::Decimal128>(type);
    case arrow::Type::DECIMAL256:
      return Decimal<arrow::Decimal256Array, arrow::Decimal256>(type);
    case arrow::Type::UINT64:
      return Encoder<arrow::UInt64Array>(
          [](const arrow::UInt64Array& array, int64_t row, std::string& out) {
            WriteNumericText(std::to_string(array.Value(row)), out);
          });
    case arrow::Type::STRING:
      return NumericText<arrow::StringArray>();
    case arrow::Type::LARGE_STRING:
      return NumericText<arrow::LargeStringArray>();
    case arrow::Type::STRING_VIEW:
      return NumericText<arrow::StringViewArray>();
    default:
      return nullptr;
  }
}

std::unique_ptr<ValueEncoder> MakeTextEncoder(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
      return Encoder<arrow::NullArray>([](const arrow::NullArray&, int64_t, std::string&) {});
    case arrow::Type::STRING:
      return Text<arrow::StringArray>();
    case arrow::Type::LARGE_STRING:
      return Text<arrow::LargeStringArray>();
    case arrow::Type::STRING_VIEW:
      return Text<arrow::StringViewArray>();
    default:
      return nullptr;
  }
}

std::unique_ptr<ValueEncoder> MakeBytesEncoder(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BINARY:
      return Bytes<arrow::BinaryArray>();
    case arrow::Type::LARGE_BINARY:
      return Bytes<arrow::LargeBinaryArray>();
    case arrow::Type::BINARY_VIEW:
      return Bytes<arrow::BinaryViewArray>();
    case arrow::Type::FIXED_SIZE_BINARY:
      return Bytes<arrow::FixedSizeBinaryArray>();
    default:
      return nullptr;
  }
}

std::unique_ptr<ValueEncoder> MakeIntegerEncoder(const arrow::DataType& type, uint32_t target) {
  switch (type.id()) {
    case arrow::Type::INT8:
      if (target == kInt2) return Integer<arrow::Int8Array, int16_t>();
      break;
    case arrow::Type::UINT8:
      if (target == kInt2) return Integer<arrow::UInt8Array, int16_t>();
      break;
    case arrow::Type::INT16:
      if (target == kInt2) return Integer<arrow::Int16Array, int16_t>();
      break;
    case arrow::Type::UINT16:
      if (target == kInt4) return Integer<arrow::UInt16Array, int32_t>();
      break;
    case arrow::Type::INT32:
      if (target == kInt4) return Integer<arrow::Int32Array, int32_t>();
      break;
    case arrow::Type::UINT32:
      if (target == kInt8) return Integer<arrow::UInt32Array, int64_t>();
      break;
    case arrow::Type::INT64:
      if (target == kInt8) return Integer<arrow::Int64Array, int64_t>();
      break;
    default:
      break;
  }
  return nullptr;
}

std::unique_ptr<ValueEncoder> MakeFloatEncoder(const arrow::DataType& type, uint32_t target) {
  if (type.id() == arrow::Type::HALF_FLOAT && target == kFloat4) {
    return Encoder<arrow::HalfFloatArray>(
        [](const arrow::HalfFloatArray& array, int64_t row, std::string& out) {
          const float value = arrow::util::Float16::FromBits(array.Value(row)).ToFloat();
          wire::ByteWriter(out).WriteU32(std::bit_cast<uint32_t>(value));
        });
  }
  if (type.id() == arrow::Type::FLOAT && target == kFloat4) {
    return Encoder<arrow::FloatArray>(
        [](const arrow::FloatArray& array, int64_t row, std::string& out) {
          wire::ByteWriter(out).WriteU32(std::bit_cast<uint32_t>(array.Value(row)));
        });
  }
  if (type.id() == arrow::Type::DOUBLE && target == kFloat8) {
    return Encoder<arrow::DoubleArray>(
        [](const arrow::DoubleArray& array, int64_t row, std::string& out) {
          wire::ByteWriter(out).WriteU64(std::bit_cast<uint64_t>(array.Value(row)));
        });
  }
  return nullptr;
}

std::unique_ptr<ValueEncoder> MakeBoolEncoder(const arrow::DataType& type) {
  if (type.id() == arrow::Type::BOOL) {
    return Encoder<arrow::BooleanArray>(
        [](const arrow::BooleanArray& array, int64_t row, std::string& out) {
          out.push_back(array.Value(row) ? '\1' : '\0');
        });
  }
  if (type.id() == arrow::Type::INT8) {  // arrow.bool8: any value but 0 is true
    return Encoder<arrow::Int8Array>(
        [](const arrow::Int8Array& array, int64_t row, std::string& out) {
          out.push_back(array.Value(row) != 0 ? '\1' : '\0');
        });
  }
  return nullptr;
}

}  // namespace

void CheckText(std::string_view text) {
  if (!arrow::util::ValidateUTF8(text)) {
    throw base::Error(base::kCharacterNotInRepertoire, "text that is not in UTF-8");
  }
  if (text.find('\0') != std::string_view::npos) {
    throw base::Error(base::kCharacterNotInRepertoire, "text with a zero byte");
  }
}

std::unique_ptr<ValueEncoder> MakeScalarEncoder(const arrow::DataType& type, uint32_t target) {
  switch (target) {
    case kBool:
      return MakeBoolEncoder(type);
    case kInt2:
    case kInt4:
    case kInt8:
      return MakeIntegerEncoder(type, target);
    case kFloat4:
    case kFloat8:
      return MakeFloatEncoder(type, target);
    case kNumeric:
      return MakeDecimalEncoder(type);
    case kText:
    case kJson:
      return MakeTextEncoder(type);
    case kBytea:
    case kUuid:
      return MakeBytesEncoder(type);
    default:
      return nullptr;
  }
}

}  // namespace tidemark::columnar
