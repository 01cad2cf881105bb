#include "columnar/foreign_encoder.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "columnar/foreign_scalar.h"
#include "columnar/foreign_time.h"
#include "columnar/json_text.h"
#include "columnar/list_codec.h"
#include "columnar/nested_array.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {

namespace {

constexpr char kJsonbVersion = 1;

class JsonbEncoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    out.push_back(kJsonbVersion);
    AppendJson(array, row, out);
  }
};

// An array of scalars, of any layout.
class ListEncoder final : public ValueEncoder {
 public:
  ListEncoder(uint32_t element_type, std::unique_ptr<ValueEncoder> element)
      : element_type_(element_type), element_(std::move(element)) {}

  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const Range range = RangeOf(array, row);
    WriteArray(*ElementsOf(array), range.begin, range.end, element_type_, *element_, out);
  }

 private:
  uint32_t element_type_;
  std::unique_ptr<ValueEncoder> element_;
};

class DictionaryEncoder final : public ValueEncoder {
 public:
  explicit DictionaryEncoder(std::unique_ptr<ValueEncoder> value) : value_(std::move(value)) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
    value_->Encode(*StorageOf(dictionary.dictionary()), dictionary.GetValueIndex(row), out);
  }

 private:
  std::unique_ptr<ValueEncoder> value_;
};

class RunEndEncoder final : public ValueEncoder {
 public:
  explicit RunEndEncoder(std::unique_ptr<ValueEncoder> value) : value_(std::move(value)) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(array);
    value_->Encode(*StorageOf(runs.values()), PhysicalRow(array, row), out);
  }

 private:
  std::unique_ptr<ValueEncoder> value_;
};

}  // namespace

std::unique_ptr<ValueEncoder> MakeForeignEncoder(const arrow::DataType& type,
                                                 const PostgresColumn& column) {
  switch (type.id()) {
    case arrow::Type::EXTENSION:
      return MakeForeignEncoder(*static_cast<const arrow::ExtensionType&>(type).storage_type(),
                                column);
    case arrow::Type::DICTIONARY:
      return std::make_unique<DictionaryEncoder>(MakeForeignEncoder(
          *static_cast<const arrow::DictionaryType&>(type).value_type(), column));
    case arrow::Type::RUN_END_ENCODED:
      return std::make_unique<RunEndEncoder>(MakeForeignEncoder(
          *static_cast<const arrow::RunEndEncodedType&>(type).value_type(), column));
    default:
      break;
  }
  if (column.type == kJsonb && arrow::is_nested(type.id())) {
    return std::make_unique<JsonbEncoder>();
  }
  if (const uint32_t element = ElementOf(column.type); element != 0 && type.num_fields() == 1) {
    return std::make_unique<ListEncoder>(
        element, MakeForeignEncoder(*type.field(0)->type(),
                                    {.name = column.name, .type = element,
                                     .modifier = column.modifier}));
  }
  if (auto encoder = MakeScalarEncoder(type, column.type)) return encoder;
  if (auto encoder = MakeForeignTimeEncoder(type)) return encoder;
  throw base::Error(base::kDatatypeMismatch,
                    fmt::format("field \"{}\" of type {} cannot be written as type {}",
                                column.name, type.ToString(), column.type));
}

std::shared_ptr<arrow::Array> StorageOf(std::shared_ptr<arrow::Array> array) {
  if (array->type_id() != arrow::Type::EXTENSION) return array;
  return static_cast<const arrow::ExtensionArray&>(*array).storage();
}

bool IsNullAt(const arrow::Array& array, int64_t row) {
  if (array.IsNull(row)) return true;
  if (array.type_id() == arrow::Type::DICTIONARY) {
    const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
    return IsNullAt(*dictionary.dictionary(), dictionary.GetValueIndex(row));
  }
  if (array.type_id() == arrow::Type::RUN_END_ENCODED) {
    const auto& runs = static_cast<const arrow::RunEndEncodedArray&>(array);
    return IsNullAt(*runs.values(), PhysicalRow(array, row));
  }
  return false;
}

}  // namespace tidemark::columnar
