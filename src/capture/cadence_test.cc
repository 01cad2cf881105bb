#include "capture/cadence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::capture {
namespace {

using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kDay = 24 * 60 * kMinute;

// 2026-11-30 09:58:13 UTC, a Monday: so many days after 2000-01-01.
constexpr int64_t kToday = 9830 * kDay;
constexpr base::Timestamp kNow{kToday + (9 * 60 + 58) * kMinute + 13 * kSecond};

std::string Next(std::string_view expression, base::Timestamp after = kNow) {
  return Cadence::Parse(expression).NextAfter(after).ToString().substr(0, 16);
}

TEST(Cadence, FindsTheNextDueMinute) {
  ASSERT_THAT(kNow.ToString(), HasSubstr("2026-11-30 09:58:13"));
  EXPECT_EQ(Next("* * * * *"), "2026-11-30 09:59");
  EXPECT_EQ(Next("*/15 * * * *"), "2026-11-30 10:00");
  EXPECT_EQ(Next("7,37 * * * *"), "2026-11-30 10:07");
  EXPECT_EQ(Next("30 2 * * *"), "2026-12-01 02:30");
  EXPECT_EQ(Next("0 9-17/4 * * *"), "2026-11-30 13:00");
  EXPECT_EQ(Next("5/20 * * * *"), "2026-11-30 10:05");
  EXPECT_EQ(Next("0 0 1 jan *"), "2027-01-01 00:00");
  EXPECT_EQ(Next("0 12 * * Wed,fri"), "2026-12-02 12:00");
  EXPECT_EQ(Next("0 12 * * 7"), "2026-12-06 12:00");
  EXPECT_EQ(Next("0 12 * * 0"), "2026-12-06 12:00");
  EXPECT_EQ(Next("@hourly"), "2026-11-30 10:00");
  EXPECT_EQ(Next("@Daily"), "2026-12-01 00:00");
  EXPECT_EQ(Next("0 0 29 2 *"), "2028-02-29 00:00");
  EXPECT_EQ(Next("58 9 * * *"), "2026-12-01 09:58");
}

TEST(Cadence, AMinuteThatIsDueIsNotItsOwnNext) {
  const base::Timestamp on_time{kToday + 10 * 60 * kMinute};
  EXPECT_EQ(Next("0 * * * *", on_time), "2026-11-30 11:00");
  EXPECT_EQ(Next("0 * * * *", base::Timestamp(on_time.postgres_us() - 1)), "2026-11-30 10:00");
}

TEST(Cadence, EitherDayFieldIsEnoughWhenBothAreRestricted) {
  EXPECT_EQ(Next("0 0 15 * 3"), "2026-12-02 00:00");
  EXPECT_EQ(Next("0 0 1 * 3"), "2026-12-01 00:00");
  EXPECT_EQ(Next("0 0 */2 * 3"), "2026-12-09 00:00") << "a step of * restricts nothing else";
}

TEST(Cadence, NonsenseIsRefusedByField) {
  const auto detail = [](std::string_view expression) {
    try {
      Cadence::Parse(expression);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state().str(), "22023");
      return error.detail();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(detail("60 * * * *"), HasSubstr("\"60\" is no minute"));
  EXPECT_THAT(detail("* 24 * * *"), HasSubstr("between 0 and 23"));
  EXPECT_THAT(detail("* * 0 * *"), HasSubstr("day of month"));
  EXPECT_THAT(detail("* * * 13 *"), HasSubstr("month"));
  EXPECT_THAT(detail("* * * * mox"), HasSubstr("day of week"));
  EXPECT_THAT(detail("*/0 * * * *"), HasSubstr("step"));
  EXPECT_THAT(detail("5-1 * * * *"), HasSubstr("backwards"));
  EXPECT_THAT(detail("* * * *"), HasSubstr("4 fields"));
  EXPECT_THAT(detail(""), HasSubstr("0 fields"));
  EXPECT_THAT(detail("1,,2 * * * *"), HasSubstr("no number"));
  EXPECT_THAT(detail("0 0 30 2 *"), HasSubstr("never"));
}

}  // namespace
}  // namespace tidemark::capture
