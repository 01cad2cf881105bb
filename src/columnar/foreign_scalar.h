// The encoders of foreign scalars; foreign_encoder.h picks among them.
#pragma once

#include <memory>

#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The encoder from arrays of the scalar `type` to the PostgreSQL type `target`; null if there is
/// none.
std::unique_ptr<ValueEncoder> MakeScalarEncoder(const arrow::DataType& type, uint32_t target);

/// Throws 22021 unless `text` is UTF-8 without a zero byte.
void CheckText(std::string_view text);

}  // namespace tidemark::columnar
