#include "capture/slot_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::capture {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMb = 1 << 20;
constexpr int64_t kWarn = 100 * kMb;

SlotJudgement Judge(const SlotLog& log) { return JudgeSlotLog(log, "s", kWarn); }

SlotLog Limited(int64_t safe_mb, std::string status = "extended") {
  return {.retained_bytes = 30 * kMb,
          .status = std::move(status),
          .safe_bytes = safe_mb * kMb,
          .keep_bytes_max = 64 * kMb};
}

TEST(SlotWatch, NothingIsSaidWhileHalfOfTheLimitIsLeft) {
  EXPECT_EQ(Judge(Limited(32)).danger, SlotDanger::kNone);
  EXPECT_FALSE(Judge(Limited(64, "reserved")).complaint);
}

TEST(SlotWatch, MoreThanHalfOfWhatIsFreeOnTheDiskIsAWarningWithALimitOrWithout) {
  auto log = Limited(64);  // 30 MB are held back
  log.free_bytes = 61 * kMb;
  EXPECT_EQ(Judge(log).danger, SlotDanger::kNone);
  log.free_bytes = 59 * kMb;
  const auto judged = Judge(log);
  EXPECT_EQ(judged.danger, SlotDanger::kNear);
  EXPECT_THAT(judged.complaint->message, HasSubstr("may fill the disk"));
  EXPECT_EQ(judged.complaint->detail, "It holds back 30 MB; 59 MB are free there.");
  log.safe_bytes.reset();
  log.keep_bytes_max.reset();
  EXPECT_EQ(Judge(log).danger, SlotDanger::kNear);
}

TEST(SlotWatch, LessThanHalfOfTheLimitIsAWarningThatTellsWhatIsLeft) {
  const auto judged = Judge(Limited(31));
  EXPECT_EQ(judged.danger, SlotDanger::kNear);
  EXPECT_EQ(judged.complaint->sqlstate, "53400");
  EXPECT_THAT(judged.complaint->detail, HasSubstr("31 MB of max_slot_wal_keep_size are left"));
}

TEST(SlotWatch, UnreservedIsImminentWhateverIsLeft) {
  const auto judged = Judge(Limited(-3, "unreserved"));
  EXPECT_EQ(judged.danger, SlotDanger::kImminent);
  EXPECT_THAT(judged.complaint->message, HasSubstr("next checkpoint"));
  EXPECT_EQ(Judge({.status = "lost", .safe_bytes = {}, .keep_bytes_max = kMb}).danger,
            SlotDanger::kImminent);
}

TEST(SlotWatch, WithoutALimitTheDeclaredSizeWarns) {
  const SlotLog below{
      .retained_bytes = kWarn, .status = "reserved", .safe_bytes = {}, .keep_bytes_max = {}};
  SlotLog beyond = below;
  beyond.retained_bytes = kWarn + 1;
  EXPECT_EQ(Judge(below).danger, SlotDanger::kNone);
  EXPECT_EQ(Judge(beyond).danger, SlotDanger::kNear);
  EXPECT_THAT(Judge(beyond).complaint->detail, HasSubstr("holds back 100 MB"));
}

TEST(SlotWatch, NoSlotIsNoComplaint) { EXPECT_FALSE(Judge({}).complaint); }

}  // namespace
}  // namespace tidemark::capture
