// Codecs of numeric: to decimal128 or decimal256 when precision and scale are declared and fit, to
// text when they are not.
#pragma once

#include <memory>

#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The codec between numeric and `type`: a decimal, whose scale every value must have, or utf8,
/// whose text shows the scale of each value. A decimal holds no NaN and no infinity: 0A000.
std::unique_ptr<ValueCodec> MakeNumericCodec(const arrow::DataType& type);

}  // namespace tidemark::columnar
