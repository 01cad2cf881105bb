// The store and the source crashed (immediate shutdown) under the capture while the workload goes
// on, and captures frozen and replaced.
//   TIDEMARK_CRASH_ROUNDS   a third of it: crashes of each server, default 6
//   TIDEMARK_CRASH_SEED     default 1
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "tests/crash/crash_fixture.h"

namespace tidemark::crash {
namespace {

using namespace std::chrono_literals;
using base::Deadline;

TEST_F(Crash, ACrashOfTheStoreChangesNoAnswer) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  for (int i = 0; i < std::max(1, Setting("TIDEMARK_CRASH_ROUNDS", 6) / 3); ++i) {
    ASSERT_TRUE(workload_->Do(60, Deadline::After(60s)));
    StoreCluster().Stop("immediate");
    StoreCluster().Start();
    ASSERT_NO_FATAL_FAILURE(CatchUp());
    for (const auto& line : instants_->AskAgain(Store(), 200)) ADD_FAILURE() << line;
    EXPECT_TRUE(follower_->running());
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

TEST_F(Crash, ACrashOfTheSourceLosesAndDoublesNothing) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  for (int i = 0; i < std::max(1, Setting("TIDEMARK_CRASH_ROUNDS", 6) / 3); ++i) {
    ASSERT_TRUE(workload_->Do(60, Deadline::After(60s)));
    SourceCluster().Stop("immediate");
    SourceCluster().Start();
    ASSERT_NO_FATAL_FAILURE(CatchUp());
    EXPECT_TRUE(follower_->running());
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

// A frozen follower keeps its lease. When its line to the store is cut, another one may begin; what
// the first one wakes up with must not be published.
TEST_F(Crash, AFrozenFollowerIsReplacedAndNothingIsLostOrDoubled) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  FollowerProcess second(name_, source_dsn_, store_dsn_, oracle::kBatchChanges);
  for (const bool first_dies : {false, true}) {
    follower_->Signal(SIGSTOP);
    second.Start();
    ASSERT_TRUE(workload_->Do(20, Deadline::After(30s)));
    const auto fence = Store().Value("SELECT fence FROM tidemark.lease");
    Store().Execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (SELECT pid "
        "FROM pg_locks WHERE locktype = 'advisory' AND granted) AND "
        "application_name = 'tidemark'");
    const auto deadline = Deadline::After(30s);
    while (Store().Value("SELECT fence FROM tidemark.lease") == fence) {
      ASSERT_FALSE(deadline.passed()) << "the second follower has not taken over\n" << second.Log();
      std::this_thread::sleep_for(20ms);
    }
    if (first_dies) {
      follower_->Kill();
    } else {
      follower_->Signal(SIGCONT);
      ASSERT_TRUE(workload_->Do(40, Deadline::After(30s)));
      ASSERT_NO_FATAL_FAILURE(CatchUp());
      second.Kill();
    }
    ASSERT_NO_FATAL_FAILURE(CatchUp());
  }
  second.Kill();
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

}  // namespace
}  // namespace tidemark::crash
