#include "columnar/foreign_time.h"

#include <arrow/array.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "wire/bytes.h"

namespace tidemark::columnar {

namespace {

constexpr int64_t kEpochDays = 10957;  // from 1970-01-01 to 2000-01-01
constexpr int64_t kDayMilliseconds = 86'400'000;
constexpr int64_t kDayMicroseconds = kDayMilliseconds * 1000;
constexpr int64_t kEpochMicroseconds = kEpochDays * kDayMicroseconds;
// What PostgreSQL itself accepts (datatype/timestamp.h), from 2000-01-01; the ends are exclusive.
constexpr int64_t kFirstDay = -2'451'545;
constexpr int64_t kEndDay = 2'145'031'949;
constexpr int64_t kFirstMicrosecond = -211'813'488'000'000'000;
constexpr int64_t kEndMicrosecond = 9'223'371'331'200'000'000;

base::Error OutOfRange(std::string_view what) {
  return base::Error(base::kDatetimeOverflow, fmt::format("{} out of range", what));
}

// Microseconds that are exactly `value` units.
int64_t Microseconds(int64_t value, arrow::TimeUnit::type unit, std::string_view what) {
  int64_t factor = 1;
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      factor = 1'000'000;
      break;
    case arrow::TimeUnit::MILLI:
      factor = 1000;
      break;
    case arrow::TimeUnit::MICRO:
      break;
    case arrow::TimeUnit::NANO:
      if (value % 1000 != 0) {
        throw base::Error(base::kDatetimeOverflow,
                          fmt::format("{} with a fraction of a microsecond out of range", what))
            .Detail(fmt::format("It is {} nanoseconds.", value));
      }
      return value / 1000;
  }
  int64_t microseconds;
  if (__builtin_mul_overflow(value, factor, &microseconds)) throw OutOfRange(what);
  return microseconds;
}

void WriteDate(int64_t unix_days, std::string& out) {
  const int64_t days = unix_days - kEpochDays;
  if (days < kFirstDay || days >= kEndDay) throw OutOfRange("date");
  wire::ByteWriter(out).WriteI32(static_cast<int32_t>(days));
}

void WriteInterval(int32_t months, int32_t days, int64_t microseconds, std::string& out) {
  wire::ByteWriter writer(out);
  writer.WriteI64(microseconds);
  writer.WriteI32(days);
  writer.WriteI32(months);
}

class Date32Encoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    WriteDate(static_cast<const arrow::Date32Array&>(array).Value(row), out);
  }
};

class Date64Encoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const int64_t milliseconds = static_cast<const arrow::Date64Array&>(array).Value(row);
    if (milliseconds % kDayMilliseconds != 0) throw OutOfRange("date with a time of day");
    WriteDate(milliseconds / kDayMilliseconds, out);
  }
};

template <typename ArrayType>
class TimeEncoder final : public ValueEncoder {
 public:
  explicit TimeEncoder(arrow::TimeUnit::type unit) : unit_(unit) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const int64_t value = static_cast<const ArrayType&>(array).Value(row);
    const int64_t microseconds = Microseconds(value, unit_, "time");
    if (microseconds < 0 || microseconds >= kDayMicroseconds) throw OutOfRange("time");
    wire::ByteWriter(out).WriteI64(microseconds);
  }

 private:
  arrow::TimeUnit::type unit_;
};

class TimestampEncoder final : public ValueEncoder {
 public:
  explicit TimestampEncoder(arrow::TimeUnit::type unit) : unit_(unit) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const int64_t value = static_cast<const arrow::TimestampArray&>(array).Value(row);
    const int64_t unix_microseconds = Microseconds(value, unit_, "timestamp");
    int64_t microseconds;
    if (__builtin_sub_overflow(unix_microseconds, kEpochMicroseconds, &microseconds) ||
        microseconds < kFirstMicrosecond || microseconds >= kEndMicrosecond) {
      throw OutOfRange("timestamp");
    }
    wire::ByteWriter(out).WriteI64(microseconds);
  }

 private:
  arrow::TimeUnit::type unit_;
};

class DurationEncoder final : public ValueEncoder {
 public:
  explicit DurationEncoder(arrow::TimeUnit::type unit) : unit_(unit) {}
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const int64_t value = static_cast<const arrow::DurationArray&>(array).Value(row);
    WriteInterval(0, 0, Microseconds(value, unit_, "duration"), out);
  }

 private:
  arrow::TimeUnit::type unit_;
};

class MonthsEncoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    WriteInterval(static_cast<const arrow::MonthIntervalArray&>(array).Value(row), 0, 0, out);
  }
};

class DayTimeEncoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto value = static_cast<const arrow::DayTimeIntervalArray&>(array).GetValue(row);
    WriteInterval(0, value.days, int64_t{value.milliseconds} * 1000, out);
  }
};

class MonthDayNanoEncoder final : public ValueEncoder {
 public:
  void Encode(const arrow::Array& array, int64_t row, std::string& out) const override {
    const auto value = static_cast<const arrow::MonthDayNanoIntervalArray&>(array).GetValue(row);
    WriteInterval(value.months, value.days,
                  Microseconds(value.nanoseconds, arrow::TimeUnit::NANO, "interval"), out);
  }
};

}  // namespace

std::unique_ptr<ValueEncoder> MakeForeignTimeEncoder(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::DATE32:
      return std::make_unique<Date32Encoder>();
    case arrow::Type::DATE64:
      return std::make_unique<Date64Encoder>();
    case arrow::Type::TIME32:
      return std::make_unique<TimeEncoder<arrow::Time32Array>>(
          static_cast<const arrow::TimeType&>(type).unit());
    case arrow::Type::TIME64:
      return std::make_unique<TimeEncoder<arrow::Time64Array>>(
          static_cast<const arrow::TimeType&>(type).unit());
    case arrow::Type::TIMESTAMP:
      return std::make_unique<TimestampEncoder>(
          static_cast<const arrow::TimestampType&>(type).unit());
    case arrow::Type::DURATION:
      return std::make_unique<DurationEncoder>(
          static_cast<const arrow::DurationType&>(type).unit());
    case arrow::Type::INTERVAL_MONTHS:
      return std::make_unique<MonthsEncoder>();
    case arrow::Type::INTERVAL_DAY_TIME:
      return std::make_unique<DayTimeEncoder>();
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
      return std::make_unique<MonthDayNanoEncoder>();
    default:
      return nullptr;
  }
}

}  // namespace tidemark::columnar
