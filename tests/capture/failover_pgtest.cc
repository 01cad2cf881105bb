// A source whose log is another one than before: promoted standbys that had all of it or not,
// restored to an earlier point, or another server altogether. The mirror ends where the source now
// is, what is gone there is closed and not forgotten, and positions say which log they are of.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

#include "tests/mirror_fixture.h"
#include "tests/standby.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;

constexpr const char* kTables =
    "CREATE TABLE t (id int PRIMARY KEY, x int, y text); "
    "CREATE TABLE u (id int PRIMARY KEY, n int)";

class Failover : public MirrorFixture {
 protected:
  void SetUp() override {
    primary_ = std::make_unique<Cluster>();
    MirrorFixture::SetUp();
    options_.source_dsn = primary_->CreateDatabase("shop");
    source_.emplace(primary_->Connect("shop"));
    source_->Execute(kTables);
    source_->Execute("INSERT INTO t SELECT i, i, 'y' FROM generate_series(1, 100) i; "
                     "INSERT INTO u VALUES (1, 1); CREATE PUBLICATION tidemark FOR ALL TABLES");
  }
  void TearDown() override { Stop(); }
  void FollowFrom(const std::string& dsn) {
    Stop();
    options_.source_dsn = dsn;
    source_.emplace(pg::Connection::Open({.dsn = dsn, .application_name = "test"},
                                         base::Deadline::After(30s)));
    Start();
  }
  // Until everything has been read whole again.
  void ExpectRepaired() {
    const auto deadline = base::Deadline::After(60s);
    while (store_->Value("SELECT bool_and(ended_at IS NOT NULL) FROM tidemark.resync") != "t") {
      ASSERT_FALSE(deadline.passed()) << store_->Value("SELECT problems FROM tidemark.progress");
      ASSERT_EQ(failure_, "");
      std::this_thread::sleep_for(50ms);
    }
    CatchUp();
    ExpectSame("SELECT * FROM t ORDER BY id");
    ExpectSame("SELECT * FROM u ORDER BY id");
  }
  std::string AtPosition(const std::string& lsn) {
    return Rows(*store_, "SELECT count(*), sum(x) FROM tidemark.as_of_position(NULL::public.t, '" +
                             lsn + "')");
  }
  std::string AtTx(const std::string& tx, const std::string& what) {
    return store_->Value("SELECT " + what + " FROM public_history.t WHERE tx_from <= " + tx +
                         " AND (tx_to IS NULL OR tx_to > " + tx + ")");
  }
  std::string Newest() { return store_->Value("SELECT tx_last FROM tidemark.resume"); }
  void ExpectProblem(const std::string& what) {
    const auto deadline = base::Deadline::After(30s);
    std::string problems;
    while (!deadline.passed()) {
      problems = store_->Value("SELECT problems::text FROM tidemark.progress");
      if (problems.find(what) != std::string::npos) return;
      std::this_thread::sleep_for(50ms);
    }
    ADD_FAILURE() << what << " is not in " << problems;
  }

  std::unique_ptr<Cluster> primary_;
};

TEST_F(Failover, AStandbyWithEverythingButTheSlotIsReadAsADifference) {
  Standby standby(*primary_);
  Start();
  CatchUp();
  source_->Execute("UPDATE u SET n = 3");
  const auto before = CatchUp();
  source_->Execute("DELETE FROM t WHERE id <= 10");
  standby.AwaitReplay(source_->Value("SELECT pg_current_wal_flush_lsn()"));
  CatchUp();
  Stop();
  source_->Execute("DELETE FROM t WHERE id = 11; INSERT INTO t VALUES (101, 101, 'late')");
  standby.AwaitReplay(source_->Value("SELECT pg_current_wal_flush_lsn()"));
  standby.Promote();
  standby.Connect("shop").Execute("UPDATE t SET x = 0 WHERE id = 12");
  FollowFrom(standby.Dsn("shop"));
  ExpectRepaired();
  EXPECT_EQ(AtPosition(before), "100|5050\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.log_branch"), "0");
  EXPECT_EQ(store_->Value("SELECT timeline FROM tidemark.source"), "2");
  source_->Execute("UPDATE t SET x = -1 WHERE id = 13");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(Failover, AStandbyThatMissedCommitsOfTheMirrorClosesThemAndKeepsTheirHistory) {
  Standby standby(*primary_);
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET y = 'common' WHERE id = 1");
  standby.AwaitReplay(source_->Value("SELECT pg_current_wal_flush_lsn()"));
  const auto common = CatchUp();
  standby.Stop();
  source_->Execute("INSERT INTO t VALUES (200, 200, 'lost')");
  source_->Execute("DELETE FROM t WHERE id = 2");
  source_->Execute("UPDATE t SET x = -3 WHERE id = 3");
  const auto beyond = CatchUp();
  const auto lost = Newest();
  Stop();
  source_.reset();
  primary_->Stop("immediate");
  standby.Start();
  standby.Promote();
  standby.Connect("shop").Execute("INSERT INTO t VALUES (300, 300, 'after')");
  FollowFrom(standby.Dsn("shop"));
  ExpectRepaired();
  source_->Execute("UPDATE t SET x = 0 WHERE id = 300");
  const auto after = CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AtTx(lost, "count(*) || ' ' || sum(x)"), "100 5242");
  EXPECT_EQ(AtPosition(common), "100|5050\n");  // the same on both
  EXPECT_EQ(AtPosition(after), "101|5050\n");
  EXPECT_EQ(store_->Value("SELECT common_to >= '" + common + "' AND common_to < '" + beyond +
                          "' FROM tidemark.log_branch"),
            "t");
  EXPECT_THAT(store_->Value("SELECT reason FROM tidemark.log_branch"),
              HasSubstr("without commits up to"));
}

TEST_F(Failover, ASourceRestoredToAnEarlierPointIsFollowedFromThere) {
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET y = 'kept' WHERE id = 1");
  const auto before = CatchUp();
  Stop();
  primary_->Stop();
  const auto copy = primary_->directory().string() + "-copy";
  ASSERT_EQ(tests::Run({"cp", "-a", primary_->directory().string(), copy}), 0);
  primary_->Start();
  source_.emplace(primary_->Connect("shop"));
  Start();
  source_->Execute("INSERT INTO t VALUES (200, 200, 'lost')");
  source_->Execute("DELETE FROM t WHERE id = 2");
  source_->Execute("UPDATE t SET x = x + 1000");
  CatchUp();
  const auto lost = Newest();
  Stop();
  source_.reset();
  primary_->Stop();
  std::filesystem::remove_all(primary_->directory());
  std::filesystem::rename(copy, primary_->directory());
  primary_->Start();
  FollowFrom(options_.source_dsn);
  ExpectRepaired();
  source_->Execute("INSERT INTO t VALUES (201, 201, 'new'); UPDATE u SET n = 2");
  const auto after = CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  ExpectSame("SELECT * FROM u ORDER BY id");
  // What was mirrored before is still there, by tx; a position is of the log that is followed now.
  EXPECT_EQ(AtTx(lost, "count(*) || ' ' || sum(x)"), "100 105248");
  EXPECT_EQ(AtPosition(after), "101|5251\n");
  try {
    AtPosition(before);
    ADD_FAILURE() << "a position of two logs was answered";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().str(), "72000");
    EXPECT_THAT(error.message(), HasSubstr("is older than"));
  }
  EXPECT_THAT(store_->Value("SELECT reason FROM tidemark.log_branch"),
              HasSubstr("restored to an earlier point"));
}

TEST_F(Failover, AnotherServerWithTheSameTablesIsFollowedByTheirNames) {
  Start();
  CatchUp();
  Cluster other;
  other.CreateDatabase("shop");
  auto there = other.Connect("shop");
  // Other OIDs, another order of columns, and one table less.
  there.Execute("CREATE TABLE filler (id int); "
                "CREATE TABLE u (n int, id int PRIMARY KEY); "
                "CREATE TABLE t (y text, id int PRIMARY KEY, x int); "
                "INSERT INTO t SELECT 'y', i, i FROM generate_series(50, 120) i; "
                "INSERT INTO u VALUES (5, 1); CREATE PUBLICATION tidemark FOR TABLE t, u");
  FollowFrom(other.Dsn("shop"));
  const auto deadline = base::Deadline::After(60s);
  while (store_->Value("SELECT count(*) FROM tidemark.resync WHERE ended_at IS NOT NULL") != "2") {
    ASSERT_FALSE(deadline.passed()) << store_->Value("SELECT problems FROM tidemark.progress");
    std::this_thread::sleep_for(50ms);
  }
  there.Execute("UPDATE t SET x = 7 WHERE id = 60");
  CatchUp();
  ExpectSame("SELECT id, x, y FROM t ORDER BY id");
  ExpectSame("SELECT id, n FROM u ORDER BY id");
  // Rows that both have are the same rows.
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id BETWEEN 61 AND 100"),
            "40");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id < 50 AND tx_to IS NOT "
                          "NULL"),
            "49");
  EXPECT_THAT(store_->Value("SELECT reason FROM tidemark.log_branch"), HasSubstr("another server"));
}

TEST_F(Failover, WithOnGapStopAPersonDecides) {
  Start();
  CatchUp();
  Stop();
  options_.resync_on_gap = false;
  Cluster other;
  other.CreateDatabase("shop");
  auto there = other.Connect("shop");
  there.Execute(kTables);
  there.Execute("CREATE PUBLICATION tidemark FOR ALL TABLES; INSERT INTO u VALUES (9, 9)");
  FollowFrom(other.Dsn("shop"));
  ExpectProblem("another server");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "100");
  store_->Execute("SELECT tidemark.request_resync(d.id, 'a person') FROM tidemark.dataset d");
  ExpectRepaired();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "0");
}

TEST_F(Failover, AnOldPrimaryIsNotFollowedByMistake) {
  Standby standby(*primary_);
  Start();
  CatchUp();
  Stop();
  standby.AwaitReplay(source_->Value("SELECT pg_current_wal_flush_lsn()"));
  const auto old = options_.source_dsn;
  standby.Promote();
  FollowFrom(standby.Dsn("shop"));
  ExpectRepaired();
  source_->Execute("UPDATE t SET x = 4711 WHERE id = 5");
  CatchUp();
  FollowFrom(old);
  ExpectProblem("timeline 1, but the mirror has followed timeline 2");
  EXPECT_EQ(store_->Value("SELECT x FROM t WHERE id = 5"), "4711");
  FollowFrom(standby.Dsn("shop"));
  source_->Execute("UPDATE t SET x = 4712 WHERE id = 5");
  CatchUp();
  EXPECT_EQ(store_->Value("SELECT x FROM t WHERE id = 5"), "4712");
}

}  // namespace
}  // namespace tidemark::tests
