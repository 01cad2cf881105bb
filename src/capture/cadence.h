// When a capture is due: a cron expression of five fields, in UTC. Pure. Follows crontab(5):
// minute, hour, day of month, month, day of week; lists, ranges, steps, names of months and days;
// @hourly and its like. A day matches if either day field does, when both are restricted.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tidemark::capture {

class Cadence {
 public:
  /// Throws 22023 naming the field and what is wrong with it, and for an expression that never
  /// comes due, such as 30 February.
  static Cadence Parse(std::string_view expression);

  /// The first due minute after `instant`.
  base::Timestamp NextAfter(base::Timestamp instant) const;

 private:
  Cadence() = default;
  bool MatchesDay(int year, unsigned month, unsigned day) const;
  std::optional<base::Timestamp> Find(base::Timestamp instant) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;      // 1 … 31
  std::bitset<13> months_;    // 1 … 12
  std::bitset<7> weekdays_;   // 0 = Sunday
  bool any_day_ = true, any_weekday_ = true;
};

}  // namespace tidemark::capture
