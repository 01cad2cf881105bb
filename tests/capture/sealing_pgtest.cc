// What sealing makes of closed partitions, and what the planner makes of the plane.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <regex>

#include "temporal/dataset.h"
#include "temporal/history.h"
#include "temporal/prune.h"
#include "temporal/sealing.h"
#include "temporal/statistics.h"
#include "tests/mirror_fixture.h"

namespace tidemark::capture {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using base::Deadline;
using namespace std::chrono_literals;

class Sealing : public tests::MirrorFixture {
 protected:
  static constexpr const char* kAll =
      "SELECT x, (SELECT string_agg(id || ':' || n, ',' ORDER BY id) FROM "
      "tidemark.as_of_tx(NULL::t, x)) FROM generate_series(1, (SELECT max(tx) FROM tidemark.tx)) x "
      "ORDER BY x";

  // As many closed partitions as `rounds`, none of them sealed, and the mirror stopped.
  void ClosePartitions(int rounds) {
    options_.history.rows_aimed = 10;
    options_.history.merge_bytes = 0;
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                     "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i");
    auto& cluster = tests::Cluster::Shared();
    const auto database = store_->Value("SELECT current_database()");
    sealer_.emplace(cluster.Connect(database));
    // The mirror's own sealing finds the turn taken.
    sealer_->Execute("SELECT pg_advisory_lock(6071219443104215634)");
    Start();
    CatchUp();
    for (int round = 1; closed() < rounds; ++round) {
      source_->Execute(fmt::format("UPDATE t SET n = {} WHERE id > {}", round, round % 8));
      CatchUp();
      if (HasFailure()) return;
    }
    Stop();
    sealer_->Execute("SELECT pg_advisory_unlock(6071219443104215634)");
  }
  int64_t closed() const { return Count("tx_to IS NOT NULL"); }
  int64_t Count(const std::string& which) const {
    auto& store = const_cast<pg::Connection&>(*store_);
    return store
        .Execute("SELECT count(*) FROM tidemark.history_partition WHERE " + which)
        .int64(0, 0);
  }
  // Until there is nothing more to do; other tests' transactions may be in the way for a while.
  void SealAll(const temporal::HistoryLimits& limits) {
    const auto deadline = Deadline::After(60s);
    for (int idle = 0; idle < 3 && !deadline.passed();) {
      if (temporal::Sealer(limits).SealOne(*sealer_)) {
        idle = 0;
        continue;
      }
      if (Count("(NOT sealed AND tx_to IS NOT NULL) OR rewritten_by IS NOT NULL") == 0) ++idle;
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_FALSE(deadline.passed());
  }
  std::string Plan(const std::string& sql) { return Rows(*store_, "EXPLAIN " + sql); }
  std::optional<pg::Connection> sealer_;
};

TEST_F(Sealing, NeighboursOfOneSizeBecomeOne) {
  ClosePartitions(17);
  const auto before = Rows(*store_, kAll);
  SealAll({});
  EXPECT_EQ(Rows(*store_, kAll), before);
  // 17 of one size: four times four are sealed as one each, and the four become one.
  EXPECT_EQ(Count("sealed"), 2);
  EXPECT_EQ(Rows(*store_,
                 "SELECT bool_and(tx_to = next OR next IS NULL) FROM (SELECT tx_to, lead(tx_from) "
                 "OVER (ORDER BY number) AS next FROM tidemark.history_partition) p"),
            "t\n");
  EXPECT_EQ(Rows(*store_, "SELECT count(*) FROM pg_inherits WHERE inhparent = "
                          "to_regclass('tidemark_history.d1')"),
            "3\n");
}

TEST_F(Sealing, ClosedOnesWaitForOthersToBeSealedWithThem) {
  ClosePartitions(5);
  const auto before = Rows(*store_, kAll);
  const auto deadline = Deadline::After(60s);
  while (Count("sealed") == 0 && !deadline.passed()) {
    temporal::Sealer({.seal_after = 1h}).SealOne(*sealer_);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(Rows(*store_, "SELECT number, sealed FROM tidemark.history_partition ORDER BY number"),
            "4|t\n5|f\n6|f\n");
  EXPECT_FALSE(temporal::Sealer({.seal_after = 1h}).SealOne(*sealer_)) << "one alone waits for others";
  SealAll({});
  EXPECT_EQ(Count("sealed"), 2);
  EXPECT_EQ(Rows(*store_, kAll), before);
}

// The statistics of the current table say how large the open partition becomes.
TEST_F(Sealing, TheOpenPartitionIsAQuarterOfTheCurrentTable) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)");
  Start();
  CatchUp();
  Stop();
  store_->Execute("UPDATE pg_class SET reltuples = 400000 WHERE oid = 'tidemark_current.d1'::regclass");
  const auto dataset = temporal::LoadDatasets(*store_, 1).at(0);
  const auto next = std::stoll(store_->Value("SELECT max(tx) + 1 FROM tidemark.tx"));
  temporal::HistoryPartitions partitions(*store_, {});
  partitions.Count(dataset, 99'999);
  partitions.RollOver(dataset, next);
  EXPECT_EQ(closed(), 0);
  partitions.Count(dataset, 1);
  partitions.RollOver(dataset, next);
  EXPECT_EQ(closed(), 1);
}

TEST_F(Sealing, MergedPartitionsKeepToSizeAndRetention) {
  ClosePartitions(9);
  SealAll({.merge_bytes = 8192});
  EXPECT_EQ(Count("sealed"), 9) << "larger than they may become";
  SealAll({.retentions = {"90 days", "4 microseconds"}});
  EXPECT_EQ(Count("sealed"), 9) << "longer than an eighth of the shortest retention";
  SealAll({.retentions = {"90 days"}});
  EXPECT_LT(Count("sealed"), 9);
}

TEST_F(Sealing, WhatWasErasedDoesNotComeBackWithARewrite) {
  ClosePartitions(3);
  auto reader = tests::Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  pg::Transaction older(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
  reader.Execute("SELECT 1 FROM t LIMIT 1");
  EXPECT_FALSE(temporal::Sealer({}).SealOne(*sealer_)) << "an older snapshot is open";
  ASSERT_EQ(Count("rewritten_by IS NOT NULL"), 1);
  const auto erased = temporal::Erase(*store_, {"public", "t"}, {{"id", "20"}});
  EXPECT_GT(erased, 0);
  EXPECT_EQ(Count("rewritten_by IS NOT NULL"), 0);
  std::move(older).Commit();
  SealAll({});
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark_history.d1 WHERE id = 20"), "0");
  EXPECT_NE(store_->Value("SELECT count(*) FROM tidemark_history.d1"), "0");
}

TEST_F(Sealing, APartitionWithVersionsOfOtherTransactionsIsLeftAsItIs) {
  ClosePartitions(1);
  store_->Execute("UPDATE tidemark_history.d1_p1 SET _to = _to + 1000000 WHERE id = 20");
  temporal::Sealer sealer({});
  EXPECT_FALSE(sealer.SealOne(*sealer_)) << "it was sealed without them";
  EXPECT_EQ(Count("sealed OR rewritten_by IS NOT NULL"), 0);
  store_->Execute("UPDATE tidemark_history.d1_p1 SET _to = _to - 1000000 WHERE id = 20");
  EXPECT_FALSE(sealer.SealOne(*sealer_)) << "not again right away";
  SealAll({});
  EXPECT_EQ(Count("sealed"), 1);
}

TEST_F(Sealing, OneDatasetThatHasToWaitLeavesTheOthersTheirTurn) {
  source_->Execute("CREATE TABLE u (id int PRIMARY KEY, n int); INSERT INTO u VALUES (20, 0)");
  ClosePartitions(1);
  const auto upper = store_->Value("SELECT max(tx_to) FROM tidemark.history_partition");
  for (const auto& dataset : temporal::LoadDatasets(*store_, 1)) {
    if (dataset.name.name != "u") continue;
    temporal::HistoryPartitions partitions(*store_, {.rows_aimed = 1});
    partitions.Count(dataset, 1);
    partitions.RollOver(dataset, std::stoll(upper));
  }
  ASSERT_EQ(closed(), 2);
  const std::string first = "(SELECT min(id) FROM tidemark.dataset)";
  auto user = tests::Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  user.Execute("BEGIN; LOCK TABLE tidemark_history.d" + store_->Value("SELECT " + first) +
               " IN ACCESS SHARE MODE");
  const auto deadline = Deadline::After(30s);
  while (Count("sealed") == 0 && !deadline.passed()) {
    temporal::Sealer({}).SealOne(*sealer_);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(Count("sealed AND dataset <> " + first), 1);
  EXPECT_EQ(Count("sealed AND dataset = " + first), 0);
  user.Execute("ROLLBACK");
  SealAll({});
  EXPECT_EQ(Count("sealed"), 2);
}

TEST_F(Sealing, ARewriteUnderWayIsEndedByWhatChangesClosedVersions) {
  ClosePartitions(1);
  // As a rewrite holds it.
  auto rewriting = tests::Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  rewriting.Execute("BEGIN; LOCK TABLE ONLY tidemark_history.d1 IN SHARE MODE");
  std::string ended;
  std::jthread thread([&] {
    try {
      rewriting.Execute("SELECT pg_sleep(60)");
    } catch (const base::Error& error) {
      ended = error.state().str();
    }
    rewriting.Execute("ROLLBACK");
  });
  const auto asleep = Deadline::After(20s);
  while (store_->Value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' "
                       "AND pid <> pg_backend_pid() AND datname = current_database()") == "0") {
    ASSERT_FALSE(asleep.passed());
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_GT(temporal::Erase(*store_, {"public", "t"}, {{"id", "20"}}), 0);
  thread.join();
  EXPECT_EQ(ended, "57014");
}

// Autovacuum would not do it: the tables themselves are empty.
TEST_F(Sealing, JoinsAreEstimatedByStatisticsOfAllRows) {
  source_->Execute(
      "CREATE TABLE t (id int PRIMARY KEY, n int); "
      "INSERT INTO t SELECT i, i % 500 FROM generate_series(1, 20000) i");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET n = n WHERE id <= 5000");
  CatchUp();
  Stop();
  store_->Execute("ANALYZE tidemark_current.d1");
  const auto estimated = [&](const std::string& from) {
    std::smatch rows;
    const auto plan = Plan("SELECT * FROM " + from);
    EXPECT_TRUE(std::regex_search(plan, rows, std::regex("rows=([0-9]+)"))) << plan;
    return std::stoll(rows[1].str());
  };
  const auto deadline = Deadline::After(20s);
  const auto analyzed = [&] {
    temporal::RefreshStatistics(*store_);
    return store_->Value("SELECT count(DISTINCT tablename) FROM pg_stats WHERE inherited AND "
                         "(schemaname, tablename) IN (('public', 't'), ('tidemark_versions', 'd1'))") ==
           "2";
  };
  while (!analyzed()) {  // what was analyzed is known after a moment
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(estimated("t a JOIN t b ON a.id = b.n"), 60'000);
  const std::string as_of = "tidemark.as_of_tx(NULL::t, 1)";
  EXPECT_LT(estimated(as_of + " a JOIN " + as_of + " b ON a.id = b.n"), 60'000);
  // Not again while they are young.
  const std::string collected =
      "SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'tidemark_versions.d1'::regclass";
  const auto once = store_->Value(collected);
  store_->Execute("ANALYZE tidemark_current.d1");
  temporal::RefreshStatistics(*store_, 1h);
  EXPECT_EQ(store_->Value(collected), once);
  while (store_->Value(collected) == once) {
    ASSERT_FALSE(deadline.passed());
    temporal::RefreshStatistics(*store_);
    std::this_thread::sleep_for(50ms);
  }
}

TEST_F(Sealing, AnInstantReadsOnlyWhatMayBeAliveAtIt) {
  ClosePartitions(5);
  SealAll({.merge_bytes = 0});
  const auto last = store_->Value("SELECT max(tx_from) FROM tidemark.history_partition");
  const auto plan = Plan("SELECT * FROM tidemark.as_of_tx(NULL::t, " + last + ")");
  EXPECT_THAT(plan, HasSubstr("Append")) << plan;
  EXPECT_THAT(plan, Not(HasSubstr("Subquery Scan"))) << plan;
  EXPECT_THAT(plan, Not(HasSubstr("d1_p"))) << "closed before that instant: " << plan;
  const auto oldest = Plan("SELECT * FROM tidemark.as_of_tx(NULL::t, 1)");
  EXPECT_THAT(oldest, HasSubstr("d1_p5")) << oldest;
  // Three tables are called d1, two of them empty parents.
  const std::regex d1(" on d1 ");
  EXPECT_EQ(std::distance(std::sregex_iterator(oldest.begin(), oldest.end(), d1), {}), 1) << oldest;
}

}  // namespace
}  // namespace tidemark::capture
