#include "capture/cadence.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <vector>

#include "base/error.h"

namespace tidemark::capture {
namespace {

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::sys_days;
using std::chrono::sys_time;
using Microseconds = std::chrono::microseconds;

constexpr sys_days kPostgresEpoch{std::chrono::year{2000} / 1 / 1};
// 29 February on a given weekday comes at least once in 28 years, but for 1900 and its like.
constexpr int kYearsMax = 41;

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  unsigned least, most;
  std::span<const std::string_view> names;  // of the values from `least` on
};

constexpr Field kMinute{"minute", 0, 59, {}};
constexpr Field kHour{"hour", 0, 23, {}};
constexpr Field kDay{"day of month", 1, 31, {}};
constexpr Field kMonth{"month", 1, 12, kMonths};
constexpr Field kWeekday{"day of week", 0, 7, kWeekdays};  // 7 is Sunday, too

struct Macro {
  std::string_view name, expression;
};
constexpr std::array kMacros = {
    Macro{"@yearly", "0 0 1 1 *"},  Macro{"@annually", "0 0 1 1 *"}, Macro{"@monthly", "0 0 1 * *"},
    Macro{"@weekly", "0 0 * * 0"},  Macro{"@daily", "0 0 * * *"},    Macro{"@midnight", "0 0 * * *"},
    Macro{"@hourly", "0 * * * *"},
};

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of(separators);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

/// One field of an expression, read into the set of its values.
class FieldReader {
 public:
  FieldReader(std::string_view expression, const Field& field)
      : expression_(expression), field_(field) {}

  std::bitset<64> Read(std::string_view text) const {
    std::bitset<64> values;
    for (const std::string_view item : Split(text, ",")) ReadItem(item, values);
    return values;
  }

 private:
  void ReadItem(std::string_view item, std::bitset<64>& values) const {
    unsigned first = field_.least, last = field_.most, step = 1;
    const size_t slash = item.find('/');
    const std::string_view range = item.substr(0, slash);
    if (range == "*") {
      if (field_.name == kWeekday.name) last = 6;
    } else {
      const size_t dash = range.find('-');
      first = last = Value(range.substr(0, dash));
      if (dash != std::string_view::npos) {
        last = Value(range.substr(dash + 1));
      } else if (slash != std::string_view::npos) {
        last = field_.most;
      }
    }
    if (slash != std::string_view::npos) step = Number(item.substr(slash + 1));
    if (step == 0) Refuse(item, "a step must not be zero");
    if (first > last) Refuse(item, "a range must not run backwards");
    for (unsigned value = first; value <= last; value += step) values.set(value);
  }

  unsigned Value(std::string_view text) const {
    const auto named = std::ranges::find(field_.names, Lower(text));
    if (named != field_.names.end()) {
      return field_.least + static_cast<unsigned>(named - field_.names.begin());
    }
    const unsigned value = Number(text);
    if (value < field_.least || value > field_.most) {
      Refuse(text, fmt::format("it must lie between {} and {}", field_.least, field_.most));
    }
    return value;
  }

  unsigned Number(std::string_view text) const {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) Refuse(text, "it is no number");
    return value;
  }

  [[noreturn]] void Refuse(std::string_view text, const std::string& why) const {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("invalid cron expression \"{}\"", expression_))
        .Detail(fmt::format("\"{}\" is no {}: {}.", text, field_.name, why))
        .Hint("Write five fields: minute, hour, day of month, month, day of week; as */15 * * * *.");
  }

  std::string_view expression_;
  const Field& field_;
};

}  // namespace

Cadence Cadence::Parse(std::string_view expression) {
  std::string text(expression);
  for (const Macro& macro : kMacros) {
    if (Lower(text) == macro.name) text = macro.expression;
  }
  std::vector<std::string_view> fields = Split(text, " \t");
  std::erase(fields, std::string_view());
  if (fields.size() != 5) {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("invalid cron expression \"{}\"", expression))
        .Detail(fmt::format("It has {} fields, not 5.", fields.size()))
        .Hint("Write five fields: minute, hour, day of month, month, day of week; as */15 * * * *.");
  }
  const auto read = [&](const Field& field, size_t i) {
    return FieldReader(expression, field).Read(fields[i]).to_ullong();
  };
  Cadence cadence;
  cadence.minutes_ = read(kMinute, 0);
  cadence.hours_ = read(kHour, 1);
  cadence.days_ = read(kDay, 2);
  cadence.months_ = read(kMonth, 3);
  const uint64_t weekdays = read(kWeekday, 4);
  cadence.weekdays_ = weekdays | (weekdays >> 7);
  cadence.any_day_ = fields[2].front() == '*';
  cadence.any_weekday_ = fields[4].front() == '*';
  if (!cadence.Find(base::Timestamp())) {
    throw base::Error(base::kInvalidParameter,
                      fmt::format("invalid cron expression \"{}\"", expression))
        .Detail("It never comes due.");
  }
  return cadence;
}

bool Cadence::MatchesDay(int year, unsigned month, unsigned day) const {
  const std::chrono::weekday weekday{
      sys_days{std::chrono::year{year} / static_cast<int>(month) / static_cast<int>(day)}};
  const bool by_day = days_[day], by_weekday = weekdays_[weekday.c_encoding()];
  return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

base::Timestamp Cadence::NextAfter(base::Timestamp instant) const { return Find(instant).value(); }

std::optional<base::Timestamp> Cadence::Find(base::Timestamp instant) const {
  const sys_time<Microseconds> after = kPostgresEpoch + Microseconds(instant.postgres_us());
  sys_time<minutes> at = std::chrono::floor<minutes>(after) + minutes(1);
  const sys_days begin = std::chrono::floor<days>(at);
  for (sys_days day = begin; day < begin + std::chrono::years(kYearsMax); day += days(1)) {
    const std::chrono::year_month_day date{day};
    const auto month = static_cast<unsigned>(date.month());
    if (!months_[month] || !MatchesDay(static_cast<int>(date.year()), month,
                                       static_cast<unsigned>(date.day()))) {
      continue;
    }
    const auto from = std::max<sys_time<minutes>>(at, day) - sys_time<minutes>(day);
    for (auto minute = from.count(); minute < 24 * 60; ++minute) {
      if (!hours_[static_cast<size_t>(minute / 60)] || !minutes_[static_cast<size_t>(minute % 60)]) {
        continue;
      }
      return base::Timestamp(
          Microseconds(day + minutes(minute) - sys_time<Microseconds>(kPostgresEpoch)).count());
    }
  }
  return std::nullopt;
}

}  // namespace tidemark::capture
