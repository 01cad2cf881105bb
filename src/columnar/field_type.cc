#include "columnar/field_type.h"

#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "columnar/foreign_type.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {

namespace {

constexpr char kExtensionNameKey[] = "ARROW:extension:name";
constexpr char kExtensionValueKey[] = "ARROW:extension:metadata";
constexpr char kUuidExtension[] = "arrow.uuid";
constexpr char kJsonExtension[] = "arrow.json";
constexpr int32_t kUuidSize = 16;
// A modifier of numeric is 4 plus precision in the high and scale in the low bits.
constexpr int32_t kModifierOffset = 4;
constexpr int32_t kScaleMask = 0x7ff;
constexpr int32_t kScaleSign = 0x400;

std::shared_ptr<arrow::DataType> NumericType(int32_t modifier) {
  if (modifier < kModifierOffset) return arrow::utf8();
  const int32_t packed = modifier - kModifierOffset;
  int32_t precision = (packed >> 16) & 0xffff;
  int32_t scale = ((packed & kScaleMask) ^ kScaleSign) - kScaleSign;
  if (scale < 0) {
    // numeric(3,-2) holds five digits before the point; few readers know a negative scale.
    precision -= scale;
    scale = 0;
  }
  if (precision <= arrow::Decimal128Type::kMaxPrecision) {
    return arrow::decimal128(precision, scale);
  }
  if (precision <= arrow::Decimal256Type::kMaxPrecision) {
    return arrow::decimal256(precision, scale);
  }
  return arrow::utf8();
}

std::shared_ptr<arrow::DataType> TypeOf(const PostgresColumn& column) {
  if (column.carry == Carry::kPostgres) return arrow::binary();
  switch (column.sent_as()) {
    case kBool:
      return arrow::boolean();
    case kInt2:
      return arrow::int16();
    case kInt4:
      return arrow::int32();
    case kInt8:
      return arrow::int64();
    case kFloat4:
      return arrow::float32();
    case kFloat8:
      return arrow::float64();
    case kNumeric:
      return NumericType(column.modifier);
    case kText:
    case kVarchar:
    case kBpchar:
    case kName:
    case kJson:
    case kJsonb:
      return arrow::utf8();
    case kDate:
      return arrow::date32();
    case kTime:
      return arrow::time64(arrow::TimeUnit::MICRO);
    case kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case kTimestamptz:
      return arrow::timestamp(arrow::TimeUnit::MICRO, "UTC");
    case kInterval:
      return arrow::month_day_nano_interval();
    case kUuid:
      return arrow::fixed_size_binary(kUuidSize);
    default:
      break;
  }
  const uint32_t element = ElementOf(column.sent_as());
  if (element == 0) return arrow::binary();
  return arrow::list(FieldOf({.name = "item", .type = element, .modifier = column.modifier}));
}

bool IsJson(uint32_t type) { return type == kJson || type == kJsonb; }

template <typename Int>
bool TakeNumber(const arrow::KeyValueMetadata& metadata, const char* key, Int& value) {
  const int at = metadata.FindKey(key);
  if (at < 0) return true;
  const std::string& text = metadata.value(at);
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && read_to == end;
}

// Equal up to names and metadata of list items, which other writers choose differently.
bool HoldsSameValues(const std::shared_ptr<arrow::DataType>& left,
                     const std::shared_ptr<arrow::DataType>& right) {
  const std::shared_ptr<arrow::DataType> a = StorageOf(left), b = StorageOf(right);
  if (a->id() == arrow::Type::LIST && b->id() == arrow::Type::LIST) {
    return HoldsSameValues(a->field(0)->type(), b->field(0)->type());
  }
  return a->Equals(*b);
}

}  // namespace

std::shared_ptr<arrow::DataType> StorageOf(const std::shared_ptr<arrow::DataType>& type) {
  if (type->id() != arrow::Type::EXTENSION) return type;
  return static_cast<const arrow::ExtensionType&>(*type).storage_type();
}

std::shared_ptr<arrow::Field> FieldOf(const PostgresColumn& column) {
  auto metadata = std::make_shared<arrow::KeyValueMetadata>();
  if (!column.type_sql.empty()) metadata->Append(kTypeKey, column.type_sql);
  metadata->Append(kTypeOidKey, std::to_string(column.type));
  if (column.modifier != -1) metadata->Append(kModifierKey, std::to_string(column.modifier));
  if (column.base_type != 0) metadata->Append(kBaseTypeOidKey, std::to_string(column.base_type));
  if (column.carry == Carry::kArrowType) {
    const char* extension = column.sent_as() == kUuid  ? kUuidExtension
                            : IsJson(column.sent_as()) ? kJsonExtension
                                                       : nullptr;
    if (extension != nullptr) {
      metadata->Append(kExtensionNameKey, extension);
      metadata->Append(kExtensionValueKey, "");
    }
  }
  return arrow::field(column.name, TypeOf(column), /*nullable=*/true, std::move(metadata));
}

std::shared_ptr<arrow::Schema> SchemaOf(std::span<const PostgresColumn> columns) {
  arrow::FieldVector fields{arrow::field(kOrdinalName, arrow::int64(), /*nullable=*/false)};
  for (const PostgresColumn& column : columns) fields.push_back(FieldOf(column));
  return arrow::schema(std::move(fields));
}

PostgresColumn ColumnOf(const arrow::Field& field) {
  const arrow::KeyValueMetadata* metadata = field.metadata().get();
  if (metadata == nullptr || !metadata->Contains(kTypeOidKey)) return ColumnOfForeign(field);
  PostgresColumn column{.name = field.name()};
  if (!TakeNumber(*metadata, kTypeOidKey, column.type) ||
      !TakeNumber(*metadata, kModifierKey, column.modifier) ||
      !TakeNumber(*metadata, kBaseTypeOidKey, column.base_type)) {
    throw base::Error(base::kDatatypeMismatch,
                      fmt::format("field \"{}\" names no PostgreSQL type", field.name()));
  }
  if (const int at = metadata->FindKey(kTypeKey); at >= 0) column.type_sql = metadata->value(at);
  if (HoldsSameValues(field.type(), TypeOf(column))) return column;
  column.carry = Carry::kPostgres;
  if (HoldsSameValues(field.type(), TypeOf(column))) return column;
  throw base::Error(base::kDatatypeMismatch,
                    fmt::format("field \"{}\" of type {} cannot be written as type {}",
                                field.name(), field.type()->ToString(), column.type));
}

bool IsForeign(const arrow::Field& field, const PostgresColumn& column) {
  return !HoldsSameValues(field.type(), TypeOf(column));
}

}  // namespace tidemark::columnar
