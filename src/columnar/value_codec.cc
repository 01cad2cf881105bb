#include "columnar/value_codec.h"

#include <arrow/util/utf8.h>
#include <fmt/format.h>

#include <bit>

#include "base/error.h"
#include "columnar/fixed_codec.h"
#include "columnar/foreign_encoder.h"
#include "columnar/list_codec.h"
#include "columnar/numeric_codec.h"
#include "columnar/time_codec.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {

namespace {

constexpr size_t kUuidSize = 16;
constexpr char kJsonbVersion = 1;

struct Bool {
  using Type = arrow::BooleanType;
  static bool Read(wire::ByteReader& in) {
    const uint8_t byte = in.ReadU8();
    if (byte > 1) {
      throw base::Error(base::kInvalidBinary, fmt::format("bool {} in a binary value", byte));
    }
    return byte == 1;
  }
  static void Write(bool value, wire::ByteWriter& out) { out.WriteU8(value ? 1 : 0); }
};

struct Int2 {
  using Type = arrow::Int16Type;
  static int16_t Read(wire::ByteReader& in) { return in.ReadI16(); }
  static void Write(int16_t value, wire::ByteWriter& out) { out.WriteI16(value); }
};

struct Int4 {
  using Type = arrow::Int32Type;
  static int32_t Read(wire::ByteReader& in) { return in.ReadI32(); }
  static void Write(int32_t value, wire::ByteWriter& out) { out.WriteI32(value); }
};

struct Int8 {
  using Type = arrow::Int64Type;
  static int64_t Read(wire::ByteReader& in) { return in.ReadI64(); }
  static void Write(int64_t value, wire::ByteWriter& out) { out.WriteI64(value); }
};

// Bits, so that -0 and every NaN stay what they are.
struct Float4 {
  using Type = arrow::FloatType;
  static float Read(wire::ByteReader& in) { return std::bit_cast<float>(in.ReadU32()); }
  static void Write(float value, wire::ByteWriter& out) {
    out.WriteU32(std::bit_cast<uint32_t>(value));
  }
};

struct Float8 {
  using Type = arrow::DoubleType;
  static double Read(wire::ByteReader& in) { return std::bit_cast<double>(in.ReadU64()); }
  static void Write(double value, wire::ByteWriter& out) {
    out.WriteU64(std::bit_cast<uint64_t>(value));
  }
};

class BinaryCodec final : public ValueCodec {
 public:
  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    Check(static_cast<arrow::BinaryBuilder&>(builder).Append(value));
    return value.size();
  }
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    out += static_cast<const arrow::BinaryArray&>(array).GetView(row);
  }
};

class UuidCodec final : public ValueCodec {
 public:
  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    wire::ByteReader in(value, base::kInvalidBinary);
    const std::string_view bytes = in.ReadBytes(kUuidSize);
    in.ExpectEnd();
    Check(static_cast<arrow::FixedSizeBinaryBuilder&>(builder).Append(bytes));
    return bytes.size();
  }
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    out += static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(row);
  }
};

// text and what is sent like it, json included. What is not UTF-8 comes from a database that does
// not know its encoding (SQL_ASCII); a utf8 array must not hold it.
class TextCodec final : public ValueCodec {
 public:
  TextCodec() { arrow::util::InitializeUTF8(); }

  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    if (!arrow::util::ValidateUTF8(value)) {
      throw base::Error(base::kCharacterNotInRepertoire, "text that is not in UTF-8")
          .Hint("Carry the column as PostgreSQL's binary value.");
    }
    CheckNoZero(value);
    Check(static_cast<arrow::StringBuilder&>(builder).Append(value));
    return value.size();
  }
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const std::string_view text = static_cast<const arrow::StringArray&>(array).GetView(row);
    CheckNoZero(text);
    out += text;
  }

 private:
  static void CheckNoZero(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) {
      throw base::Error(base::kCharacterNotInRepertoire, "text with a zero byte");
    }
  }
};

// json's text behind a version byte.
class JsonbCodec final : public ValueCodec {
 public:
  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    if (value.empty() || value.front() != kJsonbVersion) {
      throw base::Error(base::kInvalidBinary, "jsonb of an unknown version in a binary value");
    }
    return text_.Decode(value.substr(1), builder);
  }
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    out.push_back(kJsonbVersion);
    text_.Encode(array, row, out);
  }

 private:
  TextCodec text_;
};

}  // namespace

std::unique_ptr<ValueCodec> MakeValueCodec(const PostgresColumn& column) {
  if (column.carry == Carry::kPostgres) return std::make_unique<BinaryCodec>();
  switch (column.sent_as()) {
    case kBool:
      return std::make_unique<FixedCodec<Bool>>();
    case kInt2:
      return std::make_unique<FixedCodec<Int2>>();
    case kInt4:
      return std::make_unique<FixedCodec<Int4>>();
    case kInt8:
      return std::make_unique<FixedCodec<Int8>>();
    case kFloat4:
      return std::make_unique<FixedCodec<Float4>>();
    case kFloat8:
      return std::make_unique<FixedCodec<Float8>>();
    case kNumeric:
      return MakeNumericCodec(*FieldOf(column)->type());
    case kText:
    case kVarchar:
    case kBpchar:
    case kName:
    case kJson:
      return std::make_unique<TextCodec>();
    case kJsonb:
      return std::make_unique<JsonbCodec>();
    case kUuid:
      return std::make_unique<UuidCodec>();
    default:
      break;
  }
  if (auto codec = MakeTimeCodec(column.sent_as())) return codec;
  if (const uint32_t element = ElementOf(column.sent_as()); element != 0) {
    return MakeListCodec(element, MakeValueCodec({.type = element, .modifier = column.modifier}));
  }
  return std::make_unique<BinaryCodec>();
}

std::unique_ptr<ValueEncoder> MakeValueEncoder(const arrow::Field& field) {
  const PostgresColumn column = ColumnOf(field);
  if (IsForeign(field, column)) return MakeForeignEncoder(*field.type(), column);
  return MakeValueCodec(column);
}

}  // namespace tidemark::columnar
