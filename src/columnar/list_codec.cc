#include "columnar/list_codec.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "columnar/arrow_status.h"
#include "columnar/foreign_encoder.h"
#include "wire/bytes.h"
#include "wire/copy_binary.h"

namespace tidemark::columnar {

namespace {

constexpr int32_t kNull = -1;
constexpr int32_t kDimensionsMax = 6;

base::Error Unrepresentable(std::string_view what) {
  return base::Error(base::kFeatureNotSupported, fmt::format("{} has no value in a list", what))
      .Hint("Carry the column as PostgreSQL's binary value.");
}

base::Error NotSent(std::string_view what) {
  return base::Error(base::kInvalidBinary, fmt::format("array with {} in a binary value", what));
}

struct Header {
  bool may_have_nulls = false;
  int32_t size = 0;
};

class ListCodec final : public ValueCodec {
 public:
  ListCodec(uint32_t element_type, std::unique_ptr<ValueCodec> element)
      : element_type_(element_type), element_(std::move(element)) {}

  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    wire::ByteReader in(value, base::kInvalidBinary);
    const Header header = ReadHeader(in);
    auto& lists = static_cast<arrow::ListBuilder&>(builder);
    Check(lists.Append());
    arrow::ArrayBuilder& elements = *lists.value_builder();
    size_t bytes = sizeof(int32_t);
    for (int32_t i = 0; i < header.size; ++i) {
      const int32_t length = in.ReadI32();
      if (length == kNull) {
        if (!header.may_have_nulls) throw NotSent("an unannounced NULL");
        Check(elements.AppendNull());
        ++bytes;
        continue;
      }
      if (length < 0) throw NotSent(fmt::format("an element of length {}", length));
      bytes += element_->Decode(in.ReadBytes(static_cast<size_t>(length)), elements);
    }
    in.ExpectEnd();
    return bytes;
  }

  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto& lists = static_cast<const arrow::ListArray&>(array);
    const int64_t begin = lists.value_offset(row);
    WriteArray(*StorageOf(lists.values()), begin, begin + lists.value_length(row), element_type_,
               *element_, out);
  }

 private:
  Header ReadHeader(wire::ByteReader& in) const {
    const int32_t dimensions = in.ReadI32();
    const int32_t flags = in.ReadI32();
    const uint32_t type = in.ReadU32();
    if (dimensions < 0 || dimensions > kDimensionsMax || (flags & ~1) != 0) {
      throw NotSent(fmt::format("{} dimensions and flags 0x{:x}", dimensions, flags));
    }
    if (type != element_type_) {
      throw base::Error(base::kDatatypeMismatch,
                        fmt::format("array of type {} where arrays of type {} are expected", type,
                                    element_type_));
    }
    if (dimensions == 0) return {};
    if (dimensions > 1) throw Unrepresentable(fmt::format("an array of {} dimensions", dimensions));
    const int32_t size = in.ReadI32();
    const int32_t lower_bound = in.ReadI32();
    if (size <= 0) throw NotSent(fmt::format("a dimension of {} elements", size));
    if (lower_bound != 1) {
      throw Unrepresentable(fmt::format("an array with lower bound {}", lower_bound));
    }
    return {.may_have_nulls = flags == 1, .size = size};
  }

  uint32_t element_type_;
  std::unique_ptr<ValueCodec> element_;
};

}  // namespace

std::unique_ptr<ValueCodec> MakeListCodec(uint32_t element_type,
                                          std::unique_ptr<ValueCodec> element) {
  return std::make_unique<ListCodec>(element_type, std::move(element));
}

void WriteArray(const arrow::Array& elements, int64_t begin, int64_t end, uint32_t element_type,
                const ValueEncoder& element, std::string& out) {
  bool has_nulls = false;
  for (int64_t i = begin; i < end && !has_nulls; ++i) has_nulls = IsNullAt(elements, i);

  wire::ByteWriter writer(out);
  writer.WriteI32(begin == end ? 0 : 1);
  writer.WriteI32(has_nulls ? 1 : 0);
  writer.WriteU32(element_type);
  if (begin == end) return;
  writer.WriteI32(static_cast<int32_t>(end - begin));
  writer.WriteI32(1);
  wire::CopyBinaryWriter fields(out);  // an element stands as a field of a row does
  for (int64_t i = begin; i < end; ++i) {
    if (IsNullAt(elements, i)) {
      fields.WriteNull();
      continue;
    }
    const size_t begun = fields.BeginField();
    element.Encode(elements, i, out);
    fields.EndField(begun);
  }
}

}  // namespace tidemark::columnar
