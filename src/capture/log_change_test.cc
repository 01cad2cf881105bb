#include "capture/log_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::capture {
namespace {

using base::Lsn;
using testing::HasSubstr;

class CompareLogsTest : public testing::Test {
 protected:
  // The mirror has commits up to 0/100 of timeline 2, which began at 0/80.
  CompareLogsTest() {
    journal_.system_identifier = "7";
    journal_.timeline = 2;
    journal_.timeline_history = "1\t0/80\tpromoted\n";
    resume_.lsn = Lsn(0x100);
    resume_.received = Lsn(0x120);
    now_ = {.system_identifier = "7",
            .timeline = 2,
            .position = Lsn(0x100),
            .history = journal_.timeline_history};
  }
  std::optional<LogChange> Compare() const { return CompareLogs(now_, journal_, resume_); }
  void Promote(const std::string& left_at) {
    now_.timeline = 3;
    now_.history += "2\t" + left_at + "\tpromoted\n";
  }

  Journal journal_;
  temporal::Resume resume_{};
  source::LogPlace now_;
};

TEST_F(CompareLogsTest, TheSameLogIsTheSame) {
  EXPECT_FALSE(Compare());
  now_.position = Lsn(0x5000);
  EXPECT_FALSE(Compare());
}

TEST_F(CompareLogsTest, AStandbyThatHadAllIsTheSame) {
  now_.position = Lsn(0x200);
  Promote("0/100");
  EXPECT_FALSE(Compare());
}

TEST_F(CompareLogsTest, AStandbyThatLackedCommitsIsNot) {
  now_.position = Lsn(0x200);
  Promote("0/FF");
  const auto change = Compare();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->common_to, Lsn(0xff));
  EXPECT_THAT(change->reason, HasSubstr("without commits up to 0/100"));
}

TEST_F(CompareLogsTest, AnEarlierPointIsNot) {
  now_.position = Lsn(0xff);
  const auto change = Compare();
  ASSERT_TRUE(change);
  EXPECT_THAT(change->reason, HasSubstr("restored to an earlier point"));
  EXPECT_FALSE(change->common_to);
}

TEST_F(CompareLogsTest, AnotherServerIsNot) {
  now_.system_identifier = "8";
  ASSERT_TRUE(Compare());
  EXPECT_THAT(Compare()->reason, HasSubstr("system identifier 8 instead of 7"));
}

TEST_F(CompareLogsTest, AnotherTimelineOfTheSameNumberIsNot) {
  now_.history = "1\t0/90\tpromoted\n";
  EXPECT_TRUE(Compare());
}

TEST_F(CompareLogsTest, AnUnrelatedTimelineIsNot) {
  now_.timeline = 4;
  now_.history = "1\t0/80\tpromoted\n";
  ASSERT_TRUE(Compare());
  EXPECT_THAT(Compare()->reason, HasSubstr("does not come from timeline 2"));
}

TEST_F(CompareLogsTest, AnOlderTimelineIsSaidToBeOlder) {
  now_.timeline = 1;
  now_.history = "";
  ASSERT_TRUE(Compare());
  EXPECT_TRUE(Compare()->older);
}

}  // namespace
}  // namespace tidemark::capture
