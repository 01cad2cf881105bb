#include "columnar/time_codec.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "columnar/fixed_codec.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {

namespace {

constexpr int32_t kEpochDays = 10957;  // from 1970-01-01 to 2000-01-01
constexpr int64_t kDayMicroseconds = 86'400'000'000;
constexpr int64_t kEpochMicroseconds = kEpochDays * kDayMicroseconds;
constexpr int64_t kNanosecondsPerMicrosecond = 1000;
// What PostgreSQL itself accepts (datatype/timestamp.h), as days and microseconds from 2000-01-01;
// the ends are exclusive.
constexpr int32_t kFirstDay = -2'451'545;
constexpr int32_t kEndDay = 2'145'031'949;
constexpr int64_t kFirstMicrosecond = -211'813'488'000'000'000;
constexpr int64_t kEndMicrosecond = 9'223'371'331'200'000'000;

template <typename Int>
bool IsInfinity(Int value) {
  return value == std::numeric_limits<Int>::max() || value == std::numeric_limits<Int>::min();
}

base::Error Unrepresentable(std::string_view what) {
  return base::Error(base::kDatetimeOverflow, fmt::format("{} has no value in Arrow", what))
      .Hint("Carry the column as PostgreSQL's binary value.");
}

base::Error OutOfRange(std::string_view what) {
  return base::Error(base::kDatetimeOverflow, fmt::format("{} out of range", what));
}

base::Error NotSent(std::string_view what) {
  return base::Error(base::kInvalidBinary, fmt::format("{} out of range in a binary value", what));
}

struct Date {
  using Type = arrow::Date32Type;
  static int32_t Read(wire::ByteReader& in) {
    const int32_t days = in.ReadI32();
    if (IsInfinity(days)) throw Unrepresentable("an infinite date");
    if (days < kFirstDay || days >= kEndDay) throw NotSent("date");
    return days + kEpochDays;
  }
  static void Write(int32_t unix_days, wire::ByteWriter& out) {
    const int64_t days = int64_t{unix_days} - kEpochDays;
    if (days < kFirstDay || days >= kEndDay) throw OutOfRange("date");
    out.WriteI32(static_cast<int32_t>(days));
  }
};

struct Time {
  using Type = arrow::Time64Type;
  static int64_t Read(wire::ByteReader& in) {
    const int64_t microseconds = in.ReadI64();
    if (microseconds == kDayMicroseconds) throw Unrepresentable("time 24:00:00");
    if (microseconds < 0 || microseconds > kDayMicroseconds) throw NotSent("time");
    return microseconds;
  }
  static void Write(int64_t microseconds, wire::ByteWriter& out) {
    if (microseconds < 0 || microseconds >= kDayMicroseconds) throw OutOfRange("time");
    out.WriteI64(microseconds);
  }
};

struct Timestamp {
  using Type = arrow::TimestampType;
  static int64_t Read(wire::ByteReader& in) {
    const int64_t microseconds = in.ReadI64();
    if (IsInfinity(microseconds)) throw Unrepresentable("an infinite timestamp");
    if (microseconds < kFirstMicrosecond || microseconds >= kEndMicrosecond) {
      throw NotSent("timestamp");
    }
    int64_t unix_microseconds;
    if (__builtin_add_overflow(microseconds, kEpochMicroseconds, &unix_microseconds)) {
      throw Unrepresentable("a timestamp after 294247-01-10 04:00:54.775807");
    }
    return unix_microseconds;
  }
  static void Write(int64_t unix_microseconds, wire::ByteWriter& out) {
    int64_t microseconds;
    if (__builtin_sub_overflow(unix_microseconds, kEpochMicroseconds, &microseconds) ||
        microseconds < kFirstMicrosecond || microseconds >= kEndMicrosecond) {
      throw OutOfRange("timestamp");
    }
    out.WriteI64(microseconds);
  }
};

struct Interval {
  using Type = arrow::MonthDayNanoIntervalType;
  using Value = arrow::MonthDayNanoIntervalType::MonthDayNanos;
  static Value Read(wire::ByteReader& in) {
    const int64_t microseconds = in.ReadI64();
    const int32_t days = in.ReadI32();
    const int32_t months = in.ReadI32();
    int64_t nanoseconds;
    if (__builtin_mul_overflow(microseconds, kNanosecondsPerMicrosecond, &nanoseconds)) {
      throw Unrepresentable("an interval with more than 2562047 hours");
    }
    return {months, days, nanoseconds};
  }
  static void Write(const Value& value, wire::ByteWriter& out) {
    if (value.nanoseconds % kNanosecondsPerMicrosecond != 0) {
      throw base::Error(base::kDatetimeOverflow,
                        "interval with a fraction of a microsecond out of range");
    }
    out.WriteI64(value.nanoseconds / kNanosecondsPerMicrosecond);
    out.WriteI32(value.days);
    out.WriteI32(value.months);
  }
};

}  // namespace

std::unique_ptr<ValueCodec> MakeTimeCodec(uint32_t type) {
  switch (type) {
    case kDate:
      return std::make_unique<FixedCodec<Date>>();
    case kTime:
      return std::make_unique<FixedCodec<Time>>();
    case kTimestamp:
    case kTimestamptz:
      return std::make_unique<FixedCodec<Timestamp>>();
    case kInterval:
      return std::make_unique<FixedCodec<Interval>>();
    default:
      return nullptr;
  }
}

}  // namespace tidemark::columnar
