// Codecs of date, time, timestamp, timestamptz and interval. PostgreSQL counts from 2000-01-01,
// Arrow from 1970-01-01; both in microseconds without leap seconds and with the same calendar.
#pragma once

#include <memory>

#include "columnar/value_codec.h"

namespace tidemark::columnar {

/// The codec of `type`, one of kDate, kTime, kTimestamp, kTimestamptz, kInterval; null for others.
/// Infinity, 24:00:00, timestamps after 294247-01-10 04:00:54.775807 and intervals with a time
/// part of more than 2562047 hours have no Arrow value: 22008.
std::unique_ptr<ValueCodec> MakeTimeCodec(uint32_t type);

}  // namespace tidemark::columnar
