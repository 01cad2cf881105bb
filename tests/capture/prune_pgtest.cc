// Retention: whole partitions go, the horizon is an error and never a smaller answer, and one key
// can be erased from all history.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "capture/retention_job.h"
#include "temporal/prune.h"
#include "temporal/store.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class PruneTest : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    options_.history.rows_aimed = 300;
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                     "INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i");
    Start();
    CatchUp();
    for (int round = 1; round <= 20; ++round) {
      source_->Execute("UPDATE t SET n = n + 1");
      CatchUp();
      if (round == 10) middle_ = store_->Value("SELECT max(system_time) FROM tidemark.basis");
    }
    Stop();
    pruning_.emplace(temporal::OpenStore(options_.store_dsn, base::Deadline::After(20s)));
  }
  std::vector<temporal::Pruned> Prune(const std::string& span,
                                      std::chrono::milliseconds limit = 20s) {
    return temporal::Prune(*pruning_, {{options_.name, span}}, base::Deadline::After(limit), {});
  }
  std::string SumAt(const std::string& instant) {
    return store_->Value("SELECT sum(n) FROM tidemark.as_of(NULL::public.t, '" + instant + "')");
  }
  std::string Partitions() { return store_->Value("SELECT count(*) FROM "
                                                  "tidemark.history_partition"); }

  std::string middle_;
  std::optional<pg::Connection> pruning_;
};

TEST_F(PruneTest, DropsWhatIsOlderAndRefusesItAfterwards) {
  const auto first = store_->Value("SELECT min(system_time) FROM tidemark.basis");
  EXPECT_EQ(SumAt(middle_), "1000");
  const int before = std::stoi(Partitions());
  ASSERT_GT(before, 1);
  const auto pruned = Prune("0s");
  ASSERT_EQ(pruned.size(), 1u);
  EXPECT_EQ(pruned[0].partitions, before - 1);  // the open one stays
  EXPECT_FALSE(pruned[0].waits);
  EXPECT_EQ(Partitions(), "1");
  try {
    SumAt(first);
    ADD_FAILURE() << "an instant below the horizon was answered";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().str(), "72000") << error.Full();
  }
  // From the horizon on everything is answered as before.
  const auto expected = store_->Value(
      "SELECT (max(t.tx) - 1) * 100 FROM tidemark.tx t WHERE t.tx <= (SELECT b.tx_last FROM "
      "tidemark.basis_journal b WHERE b.system_time = '" + pruned[0].horizon + "')");
  EXPECT_EQ(SumAt(pruned[0].horizon), expected);
  EXPECT_EQ(store_->Value("SELECT sum(n) FROM t"), "2000");
}

TEST_F(PruneTest, KeepsWhatIsYoungerThanTheRetention) {
  const int before = std::stoi(Partitions());
  const auto pruned = Prune("1d");
  EXPECT_EQ(pruned[0].partitions, 0);
  EXPECT_EQ(std::stoi(Partitions()), before);
  EXPECT_EQ(SumAt(middle_), "1000");
}

TEST_F(PruneTest, WaitsForReadersThatBeganBeforeTheHorizonMoved) {
  auto reader = temporal::OpenStore(options_.store_dsn, base::Deadline::After(20s));
  reader.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tidemark.basis");
  const auto waiting = Prune("0s", 500ms);
  EXPECT_TRUE(waiting[0].waits);
  EXPECT_EQ(waiting[0].partitions, 0);
  EXPECT_EQ(reader.Value("SELECT sum(n) FROM tidemark.as_of(NULL::public.t, '" + middle_ + "')"),
            "1000");
  reader.Execute("COMMIT");
  const auto pruned = Prune("0s");
  EXPECT_FALSE(pruned[0].waits);
  EXPECT_GT(pruned[0].partitions, 0);
}

TEST_F(PruneTest, ErasedKeyIsGoneFromAllHistoryAndTheErasureIsRecorded) {
  EXPECT_EQ(temporal::Erase(*pruning_, {"public", "t"}, {{"id", "7"}}), 20);
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id = 7"), "1");
  EXPECT_EQ(store_->Value("SELECT sum(n) FROM tidemark.as_of(NULL::public.t, '" + middle_ + "')"),
            "990");
  EXPECT_EQ(Rows(*store_, "SELECT key_columns, versions FROM tidemark.erasure"), "{id}|20\n");
}

TEST_F(PruneTest, ErasureByAnythingButTheKeyIsRefused) {
  for (const auto& key : std::vector<std::vector<std::pair<std::string, std::string>>>{
           {}, {{"n", "1"}}, {{"id", "1"}, {"n", "1"}}}) {
    try {
      temporal::Erase(*pruning_, {"public", "t"}, key);
      ADD_FAILURE();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kUndefinedColumn);
      EXPECT_THAT(error.hint(), HasSubstr("(id)"));
    }
  }
  EXPECT_THROW(temporal::Erase(*pruning_, {"public", "none"}, {{"id", "1"}}), base::Error);
}

TEST_F(PruneTest, DeclaredRetentionIsKeptOnceAnHourByTheClock) {
  std::atomic<int64_t> now{0};
  std::atomic<bool> asked{false};
  const capture::RetentionOptions options{
      .store_dsn = options_.store_dsn,
      .retentions = {{options_.name, "0s"}},
      .now =
          [&] {
            const base::Timestamp time(now);
            asked = true;
            return time;
          },
      .look_every = 10ms};
  std::jthread job([&](std::stop_token stop) { capture::KeepRetention(options, stop); });
  const auto await = [&](const std::string& partitions) {
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed() && Partitions() != partitions) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(Partitions(), partitions);
  };
  // The job's own beginning is what it counts from.
  const auto begun = base::Deadline::After(30s);
  while (!asked && !begun.passed()) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(asked);
  const auto before = Partitions();
  ASSERT_GT(std::stoi(before), 1);
  now = std::chrono::microseconds(59s).count();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(Partitions(), before);
  now = std::chrono::microseconds(60s).count();
  await("1");
  // What fills up afterwards stays until an hour has passed.
  Start();
  for (int round = 1; round <= 4; ++round) {
    source_->Execute("UPDATE t SET n = n + 1");
    CatchUp();
  }
  Stop();
  const auto filled = Partitions();
  ASSERT_GT(std::stoi(filled), 1);
  now = std::chrono::microseconds(60s + 59min).count();
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(Partitions(), filled);
  now = std::chrono::microseconds(60s + 61min).count();
  await("1");
}

TEST_F(PruneTest, TableMayHaveARetentionOfItsOwn) {
  const int before = std::stoi(Partitions());
  const auto prune = [&](const std::string& span, std::map<std::string, std::string> by_table) {
    return temporal::Prune(*pruning_, {{options_.name, span, std::move(by_table)}},
                           base::Deadline::After(20s), {});
  };
  EXPECT_EQ(prune("0s", {{"public.t", "1d"}}).at(0).partitions, 0);
  EXPECT_TRUE(prune("", {{"public.other", "0s"}}).empty());
  EXPECT_EQ(prune("", {{"public.t", "0s"}}).at(0).partitions, before - 1);
}

}  // namespace
}  // namespace tidemark::tests
