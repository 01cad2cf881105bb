#include "base/clock.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::base {

namespace {
constexpr int64_t kPostgresEpochUnixUs = 946'684'800'000'000;
}

std::chrono::milliseconds Deadline::left(std::chrono::milliseconds most) const {
  const auto now = Clock::now();
  if (now >= at_) return std::chrono::milliseconds(0);
  if (at_ - now >= most) return most;
  return std::chrono::ceil<std::chrono::milliseconds>(at_ - now);
}

Timestamp Timestamp::FromSystem(std::chrono::system_clock::time_point at) {
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  return Timestamp(us - kPostgresEpochUnixUs);
}

std::string Timestamp::ToString() const {
  using std::chrono::days;
  using std::chrono::microseconds;
  const std::chrono::sys_time<microseconds> at{microseconds(us_ + kPostgresEpochUnixUs)};
  const auto day = std::chrono::floor<days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{at - day};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}+00", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

}  // namespace tidemark::base
