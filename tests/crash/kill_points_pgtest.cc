// The capture killed at every kill point and at random while the workload goes on: the store must
// hold every commit of the source exactly once, whatever happens.
//   TIDEMARK_CRASH_ROUNDS   random kills, default 6
//   TIDEMARK_CRASH_SEED     default 1
#include <gtest/gtest.h>

#include <random>

#include "tests/crash/crash_fixture.h"

namespace tidemark::crash {
namespace {

using namespace std::chrono_literals;
using base::Deadline;
using base::Lsn;

TEST_F(Crash, KilledBeforeCommitLeavesPreviousBasisVisible) {
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  ASSERT_TRUE(follower_->Stop());
  const auto basis = Store().Value("SELECT max(number) FROM tidemark.basis");
  follower_->Start("publish.before_commit");
  Source().Execute("UPDATE items SET n = 77 WHERE id <= 3");
  ASSERT_TRUE(follower_->WaitKilled(Deadline::After(30s)));
  EXPECT_EQ(Store().Value("SELECT max(number) FROM tidemark.basis"), basis);
  EXPECT_EQ(Store().Value("SELECT count(*) FROM items WHERE n = 77"), "0");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  EXPECT_EQ(Store().Value("SELECT count(*) FROM items WHERE n = 77"), "3");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM public_history.items WHERE id <= 3"), "6");
}

TEST_F(Crash, KilledAfterCommitAppliesNothingTwice) {
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  ASSERT_TRUE(follower_->Stop());
  follower_->Start("publish.after_commit");
  Source().Execute("UPDATE items SET n = n + 1 WHERE id <= 3");
  Source().Execute("INSERT INTO journal_line SELECT 1, 'once' FROM generate_series(1, 4)");
  ASSERT_TRUE(follower_->WaitKilled(Deadline::After(30s)));
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  EXPECT_EQ(Store().Value("SELECT count(*) FROM journal_line"), "4");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM public_history.items WHERE id <= 3"), "6");
}

TEST_F(Crash, KilledDuringTheFirstCopyItStartsAgainAndLeavesNothingBehind) {
  StartWorkload();
  workload_->Calm(true);
  StartReaders();
  for (const char* point : {"copy.before_slot", "copy.slot_created", "copy.prepared", "copy.rows",
                            "copy.rows:5", "copy.copied", "copy.before_attach"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
    EXPECT_TRUE(NothingPublished()) << point;
  }
  // And at any time.
  std::minstd_rand random(7);
  for (int i = 0; i < 2; ++i) {
    follower_->Start();
    follower_->WaitKilled(Deadline::After(std::chrono::milliseconds(50 + random() % 400)));
    follower_->Kill();
  }
  follower_->Start("copy.after_attach");
  if (follower_->WaitKilled(Deadline::After(10s))) {
    EXPECT_FALSE(NothingPublished());
    follower_->Start();
  }
  workload_->Calm(false);
  ASSERT_TRUE(workload_->Do(50, Deadline::After(60s)));
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  ExpectNothingLeftBehind();
}

TEST_F(Crash, KilledAtAnyPointOfTheStreamNothingIsLostOrDoubled) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  follower_->Kill();
  for (const char* point :
       {"apply.staged", "apply.staged:3", "apply.staged:17", "apply.done", "apply.done:3",
        "apply.done:17", "publish.before_commit", "publish.before_commit:3",
        "publish.before_commit:17", "publish.after_commit", "publish.after_commit:3",
        "confirm.before", "confirm.before:3"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
  }
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  ExpectNothingLeftBehind();
}

TEST_F(Crash, KilledInABacklogOfManyBatchesEachIsThereOnce) {
  follower_.emplace(name_, source_dsn_, store_dsn_, /*batch_changes=*/100);
  follower_->Start();
  StartWorkload();
  workload_->Calm(true);
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  follower_->Kill();
  for (const char* point : {"apply.staged:5", "publish.before_commit:2", "publish.after_commit:2"}) {
    ASSERT_TRUE(workload_->Do(150, Deadline::After(60s)));  // a backlog of several batches
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
  }
  follower_->Start();
  workload_->Calm(false);
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  ExpectNothingLeftBehind();
}

TEST_F(Crash, KilledWhileATransactionIsSentAndWhenItCommitsItIsThereOnce) {
  // The source holds so little back that it sends a large transaction while it runs.
  follower_.emplace(name_, source_dsn_ + " options='-c logical_decoding_work_mem=64kB'",
                    store_dsn_, oracle::kBatchChanges);
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  follower_->Kill();
  auto large = SourceCluster().Connect(name_);
  large.Execute("BEGIN");
  large.Execute("INSERT INTO journal_line SELECT -9, repeat('kept', 30) FROM generate_series(1, "
                "2000)");
  large.Execute("SAVEPOINT s");
  large.Execute("INSERT INTO journal_line SELECT -9, repeat('gone', 30) FROM generate_series(1, "
                "2000)");
  large.Execute("ROLLBACK TO s");
  for (const char* point : {"stream.block", "stream.block:3"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
    EXPECT_EQ(Store().Value("SELECT count(*) FROM journal_line WHERE id = -9"), "0");
  }
  large.Execute("COMMIT");
  for (const char* point : {"stream.replayed", "stream.block:2", "publish.before_commit"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
  }
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  // The workload may have truncated them since.
  EXPECT_EQ(Store().Value("SELECT count(*) FROM public_history.journal_line WHERE id = -9"),
            "2000");
}

TEST_F(Crash, KilledAtRandomNothingIsLostOrDoubled) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  std::minstd_rand random(static_cast<unsigned>(Setting("TIDEMARK_CRASH_SEED", 1)));
  for (int i = 0; i < Setting("TIDEMARK_CRASH_ROUNDS", 6); ++i) {
    EXPECT_FALSE(
        follower_->WaitKilled(Deadline::After(std::chrono::milliseconds(random() % 1200))));
    follower_->Kill();
    follower_->Start();
    if (i % 3 == 2) {
      ASSERT_NO_FATAL_FAILURE(CatchUpAndCompare());
    }
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

}  // namespace
}  // namespace tidemark::crash
