// The codec of types whose values have one width on both sides. A Conversion names the Arrow type
// and holds the pair Read and Write between the wire and that type's C value.
#pragma once

#include <arrow/array.h>
#include <arrow/builder.h>

#include "columnar/arrow_status.h"
#include "columnar/value_codec.h"
#include "wire/bytes.h"

namespace tidemark::columnar {

template <typename Conversion>
class FixedCodec final : public ValueCodec {
  using Traits = arrow::TypeTraits<typename Conversion::Type>;

 public:
  size_t Decode(std::string_view value, arrow::ArrayBuilder& builder) const override {
    wire::ByteReader in(value, base::kInvalidBinary);
    const auto decoded = Conversion::Read(in);
    in.ExpectEnd();
    Check(static_cast<typename Traits::BuilderType&>(builder).Append(decoded));
    return sizeof decoded;
  }

  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    wire::ByteWriter writer(out);
    Conversion::Write(static_cast<const typename Traits::ArrayType&>(array).Value(row), writer);
  }
};

}  // namespace tidemark::columnar
