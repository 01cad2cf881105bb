// The encoders of foreign dates, times and intervals, whose units PostgreSQL does not have.
#pragma once

#include <memory>

#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The encoder from arrays of `type` to date, time, timestamp, timestamptz or interval; null if
/// `type` is none of them. Encoding throws 22008 for what does not fit: a fraction of a microsecond
/// or of a day, a value outside PostgreSQL's range.
std::unique_ptr<ValueEncoder> MakeForeignTimeEncoder(const arrow::DataType& type);

}  // namespace tidemark::columnar
