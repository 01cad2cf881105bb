#include "columnar/foreign_type.h"

#include <arrow/extension/opaque.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/error.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {

namespace {

constexpr char kExtensionNameKey[] = "ARROW:extension:name";
constexpr int32_t kUuidSize = 16;
constexpr int32_t kUint64Digits = 20;
constexpr int32_t kModifierOffset = 4;
constexpr int32_t kScaleMask = 0x7ff;
constexpr int32_t kScaleSign = 0x400;
constexpr int32_t kPrecisionShift = 16;

struct PostgresType {
  uint32_t oid = 0;
  int32_t modifier = -1;
};

int32_t NumericModifier(int32_t precision, int32_t scale) {
  return ((precision << kPrecisionShift) | (scale & kScaleMask)) + kModifierOffset;
}

base::Error NoType(const std::string& path, const arrow::DataType& type, std::string_view why) {
  return base::Error(base::kFeatureNotSupported,
                     fmt::format("field \"{}\" of type {} has no type in PostgreSQL", path,
                                 type.ToString()))
      .Detail(std::string(why));
}

// Everything below `type` must have a form in JSON.
void CheckJson(const std::string& path, const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::SPARSE_UNION:
    case arrow::Type::DENSE_UNION:
      throw NoType(path, type, "A union has no single type.");
    case arrow::Type::EXTENSION:
      return CheckJson(path, *static_cast<const arrow::ExtensionType&>(type).storage_type());
    case arrow::Type::DICTIONARY:
      return CheckJson(path, *static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::STRUCT: {
      std::set<std::string_view> names;
      for (const auto& field : type.fields()) {
        if (!names.insert(field->name()).second) {
          throw NoType(path, type,
                       fmt::format("Two of its fields have the name \"{}\".", field->name()));
        }
      }
      break;
    }
    default:
      break;
  }
  for (const auto& field : type.fields()) CheckJson(path + "." + field->name(), *field->type());
}

// An extension by name; the storage's type where the name says nothing more.
uint32_t TypeOfExtension(std::string_view name, const arrow::DataType& storage) {
  const bool text = storage.id() == arrow::Type::STRING ||
                    storage.id() == arrow::Type::LARGE_STRING ||
                    storage.id() == arrow::Type::STRING_VIEW;
  if (name == "arrow.json" && text) return kJson;
  if (name == "arrow.uuid" && storage.id() == arrow::Type::FIXED_SIZE_BINARY &&
      static_cast<const arrow::FixedSizeBinaryType&>(storage).byte_width() == kUuidSize) {
    return kUuid;
  }
  if (name == "arrow.bool8" && storage.id() == arrow::Type::INT8) return kBool;
  return 0;
}

PostgresType TypeOf(const std::string& path, const arrow::Field& field);

PostgresType TypeOf(const std::string& path, const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
      return {kText};  // a column of NULLs only
    case arrow::Type::BOOL:
      return {kBool};
    case arrow::Type::INT8:
    case arrow::Type::UINT8:
    case arrow::Type::INT16:
      return {kInt2};
    case arrow::Type::UINT16:
    case arrow::Type::INT32:
      return {kInt4};
    case arrow::Type::UINT32:
    case arrow::Type::INT64:
      return {kInt8};
    case arrow::Type::UINT64:
      return {kNumeric, NumericModifier(kUint64Digits, 0)};
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT:
      return {kFloat4};
    case arrow::Type::DOUBLE:
      return {kFloat8};
    case arrow::Type::DECIMAL32:
    case arrow::Type::DECIMAL64:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256: {
      const auto& decimal = static_cast<const arrow::DecimalType&>(type);
      return {kNumeric, NumericModifier(decimal.precision(), decimal.scale())};
    }
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return {kText};
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
      return {kBytea};
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return {kDate};
    case arrow::Type::TIME32:
    case arrow::Type::TIME64:
      return {kTime};
    case arrow::Type::TIMESTAMP:
      return {static_cast<const arrow::TimestampType&>(type).timezone().empty() ? kTimestamp
                                                                                : kTimestamptz};
    case arrow::Type::DURATION:
    case arrow::Type::INTERVAL_MONTHS:
    case arrow::Type::INTERVAL_DAY_TIME:
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
      return {kInterval};
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW: {
      const PostgresType element = TypeOf(path, *type.field(0));
      if (const uint32_t array = ArrayOf(element.oid); array != 0 && element.oid != kJsonb) {
        return {array, element.modifier};
      }
      CheckJson(path, type);  // a list of lists or structs
      return {kJsonb};
    }
    case arrow::Type::STRUCT:
    case arrow::Type::MAP:
      CheckJson(path, type);
      return {kJsonb};
    case arrow::Type::DICTIONARY:
      return TypeOf(path, *static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::RUN_END_ENCODED:
      return TypeOf(path, *static_cast<const arrow::RunEndEncodedType&>(type).value_type());
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      const arrow::DataType& storage = *extension.storage_type();
      const std::string name = extension.extension_name();
      if (const uint32_t oid = TypeOfExtension(name, storage); oid != 0) return {oid};
      if (name == "arrow.opaque" && storage.id() == arrow::Type::STRING &&
          static_cast<const arrow::extension::OpaqueType&>(type).type_name() == "numeric") {
        return {kNumeric};
      }
      return TypeOf(path, storage);
    }
    case arrow::Type::SPARSE_UNION:
    case arrow::Type::DENSE_UNION:
      throw NoType(path, type, "A union has no single type.");
    default:
      throw NoType(path, type, "The type is not known.");
  }
}

PostgresType TypeOf(const std::string& path, const arrow::Field& field) {
  // An extension that is not registered shows in the metadata only.
  if (field.metadata() != nullptr) {
    if (const int at = field.metadata()->FindKey(kExtensionNameKey); at >= 0) {
      const std::string& name = field.metadata()->value(at);
      if (const uint32_t oid = TypeOfExtension(name, *field.type()); oid != 0) return {oid};
    }
  }
  return TypeOf(path, *field.type());
}

std::string_view NameOf(uint32_t type) {
  switch (type) {
    case kBool:
      return "boolean";
    case kBytea:
      return "bytea";
    case kName:
      return "name";
    case kInt8:
      return "bigint";
    case kInt2:
      return "smallint";
    case kInt4:
      return "integer";
    case kText:
      return "text";
    case kJson:
      return "json";
    case kFloat4:
      return "real";
    case kFloat8:
      return "double precision";
    case kBpchar:
      return "character";
    case kVarchar:
      return "character varying";
    case kDate:
      return "date";
    case kTime:
      return "time without time zone";
    case kTimestamp:
      return "timestamp without time zone";
    case kTimestamptz:
      return "timestamp with time zone";
    case kInterval:
      return "interval";
    case kNumeric:
      return "numeric";
    case kUuid:
      return "uuid";
    case kJsonb:
      return "jsonb";
    default:
      return "";
  }
}

}  // namespace

std::string TypeSqlOf(uint32_t type, int32_t modifier) {
  if (const uint32_t element = ElementOf(type); element != 0) {
    return TypeSqlOf(element, modifier) + "[]";
  }
  std::string name(NameOf(type));
  if (type == kNumeric && modifier >= kModifierOffset) {
    const int32_t packed = modifier - kModifierOffset;
    const int32_t scale = ((packed & kScaleMask) ^ kScaleSign) - kScaleSign;
    name += fmt::format("({},{})", packed >> kPrecisionShift, scale);
  }
  return name;
}

PostgresColumn ColumnOfForeign(const arrow::Field& field) {
  const PostgresType type = TypeOf(field.name(), field);
  return {.name = field.name(),
          .type = type.oid,
          .modifier = type.modifier,
          .type_sql = TypeSqlOf(type.oid, type.modifier)};
}

}  // namespace tidemark::columnar
