// Transactions that the source sends while they still run: nothing of them shows before they
// commit, what they rolled back never does, and whatever happens meanwhile changes neither.
#include <fmt/format.h>

#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

class Streamed : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    // The source holds so little back that nearly everything is sent while it runs.
    options_.source_dsn += " options='-c logical_decoding_work_mem=64kB'";
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, x int, note text); "
        "CREATE TABLE u (id int PRIMARY KEY, x int); "
        "INSERT INTO t VALUES (0, 0, 'first'); "
        "CREATE PUBLICATION tidemark FOR ALL TABLES");
    Start();
    CatchUp();
  }
  void TearDown() override {
    EXPECT_NE(StreamedCount(), "0") << "nothing was sent while it ran";
    MirrorFixture::TearDown();
  }
  pg::Connection Session() {
    return pg::Connection::Open({.dsn = options_.source_dsn, .application_name = "session"},
                                base::Deadline::After(10s));
  }
  std::string StreamedCount() {
    return source_->Value(
        "SELECT coalesce(sum(stream_txns), 0) FROM pg_stat_replication_slots WHERE slot_name = $1",
        {capture::SlotNameFor(options_.name)});
  }
  // The walsender tells how much it has streamed at the end of each block.
  void AwaitStreamed(const std::string& before) {
    const auto deadline = base::Deadline::After(30s);
    while (StreamedCount() == before && !deadline.passed()) std::this_thread::sleep_for(20ms);
    EXPECT_NE(StreamedCount(), before);
  }
  static std::string Insert(int from, int to, const std::string& table = "t") {
    return fmt::format("INSERT INTO {} SELECT i, i{} FROM generate_series({}, {}) i", table,
                       table == "t" ? ", repeat('n', 100)" : "", from, to);
  }
  void ExpectAllSame() {
    CatchUp();
    ExpectSame("SELECT * FROM t ORDER BY id");
    ExpectSame("SELECT * FROM u ORDER BY id");
  }
};

TEST_F(Streamed, NothingShowsBeforeItCommitsAndOnlyWhatWasKeptAfter) {
  auto session = Session();
  const auto before = StreamedCount();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 600));
  session.Execute("SAVEPOINT s");
  session.Execute(Insert(601, 1200));
  session.Execute("SAVEPOINT nested");
  session.Execute(Insert(1201, 1800));
  session.Execute("RELEASE nested");
  session.Execute("ROLLBACK TO s");
  session.Execute(Insert(601, 603));
  AwaitStreamed(before);
  source_->Execute("UPDATE t SET x = 1 WHERE id = 0");
  CatchUp();  // others are not held up
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "1");
  EXPECT_EQ(store_->Value("SELECT x FROM t WHERE id = 0"), "1");
  session.Execute("COMMIT");
  ExpectAllSame();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "604");
  EXPECT_EQ(store_->Value("SELECT count(DISTINCT _from) FROM tidemark_current.d1 WHERE id > 0"),
            "1");
}

TEST_F(Streamed, ExceptionsInALoopAndTenThousandSubtransactions) {
  source_->Execute(R"sql(
DO $$
BEGIN
  FOR i IN 1 .. 10000 LOOP
    BEGIN
      INSERT INTO t VALUES (i, i, repeat('n', 20));
      IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO u VALUES (i, i);
    END;
  END LOOP;
END $$)sql");
  ExpectAllSame();
  EXPECT_EQ(store_->Value("SELECT (SELECT count(*) FROM t) || ' ' || (SELECT count(*) FROM u)"),
            "6668 3333");
}

TEST_F(Streamed, AWholeRollbackLeavesNothing) {
  auto session = Session();
  const auto before = StreamedCount();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 3000));
  AwaitStreamed(before);
  session.Execute("ROLLBACK");
  source_->Execute(Insert(1, 5));
  ExpectAllSame();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "6");
}

TEST_F(Streamed, ManyAtOnceCommitInTheirOwnOrder) {
  std::vector<pg::Connection> sessions;
  const int count = 8;
  for (int i = 0; i < count; ++i) {
    sessions.push_back(Session());
    sessions.back().Execute("BEGIN");
  }
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < count; ++i) {
      const int from = 1 + i * 10'000 + round * 500;
      sessions[i].Execute(Insert(from, from + 499));
      sessions[i].Execute(fmt::format("UPDATE t SET x = x + 1 WHERE id BETWEEN {} AND {}", from,
                                      from + 50));
    }
  }
  for (const int i : {3, 7, 0, 5}) sessions[i].Execute("COMMIT");
  sessions[1].Execute("ROLLBACK");
  for (const int i : {2, 6, 4}) sessions[i].Execute("COMMIT");
  ExpectAllSame();
  // Their order is the order of their commits.
  EXPECT_EQ(Rows(*store_, "SELECT id / 10000 FROM tidemark_current.d1 WHERE id > 0 "
                          "GROUP BY id / 10000 ORDER BY min(_from)"),
            "3\n7\n0\n5\n2\n6\n4\n");
}

TEST_F(Streamed, ShapesThatChangeInsideAreThoseOfEachRow) {
  auto session = Session();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 1000));
  session.Execute("ALTER TABLE t ADD extra text DEFAULT 'default'");
  session.Execute(Insert(1001, 2000));
  session.Execute("SAVEPOINT s");
  session.Execute("ALTER TABLE t ADD gone int; ALTER TABLE t DROP note");
  session.Execute("INSERT INTO t SELECT i, i, 'e', 1 FROM generate_series(2001, 3000) i");
  session.Execute("ROLLBACK TO s");
  session.Execute(Insert(2001, 2500));
  session.Execute("ALTER TABLE t RENAME x TO renamed");
  session.Execute("UPDATE t SET renamed = -id WHERE id > 2000");
  session.Execute("COMMIT");
  source_->Execute("INSERT INTO t VALUES (-1, -1, 'later', 'e')");
  ExpectAllSame();
}

// The only description of the table that the source sends belongs to what is rolled back.
TEST_F(Streamed, ATableIsFirstTouchedByWhatIsRolledBack) {
  auto session = Session();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 2000));
  session.Execute("SAVEPOINT s");
  session.Execute(Insert(1, 3000, "u"));
  session.Execute("ROLLBACK TO s");
  session.Execute(Insert(5, 7, "u"));
  session.Execute(Insert(2001, 4000));
  session.Execute("COMMIT");
  ExpectAllSame();
  auto another = Session();
  another.Execute("BEGIN");
  another.Execute("SAVEPOINT s");
  another.Execute(Insert(8, 4000, "u"));
  another.Execute("ROLLBACK TO s");
  another.Execute(Insert(4001, 6000));
  another.Execute("COMMIT");
  source_->Execute(Insert(8, 9, "u"));
  ExpectAllSame();
}

TEST_F(Streamed, WhatTheFollowerMissedOfItIsSentAgain) {
  auto session = Session();
  auto before = StreamedCount();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 2000));
  AwaitStreamed(before);
  Stop();
  session.Execute(Insert(2001, 3000));
  source_->Execute("UPDATE t SET x = 5 WHERE id = 0");
  Start();
  CatchUp();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "1");
  session.Execute(Insert(3001, 4000));
  session.Execute("COMMIT");
  ExpectAllSame();
  Stop();
  Start();  // what is stored is passed over
  source_->Execute("DELETE FROM t WHERE id = 4000");
  ExpectAllSame();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "4000");
}

TEST_F(Streamed, LargeValuesThatWereNotTouchedKeepTheirValue) {
  source_->Execute("ALTER TABLE t ALTER note SET STORAGE EXTERNAL; "
                   "INSERT INTO t SELECT i, i, repeat(i::text, 3000) FROM generate_series(1, 50) "
                   "i");
  CatchUp();
  source_->Execute("BEGIN; UPDATE t SET x = x + 1; UPDATE t SET note = repeat('y', 9000) WHERE id "
                   "= 7; "
                   "UPDATE t SET x = x + 1; TRUNCATE u; COMMIT");
  source_->Execute("BEGIN; " + Insert(1, 3000, "u") + "; UPDATE t SET x = x + 1; COMMIT");
  ExpectAllSame();
}

TEST_F(Streamed, ASlowStoreDoesNotBreakTheLine) {
  Stop();
  options_.source_dsn.insert(options_.source_dsn.size() - 1, " -c wal_sender_timeout=2s");
  Start();
  CatchUp();
  const auto walsender = [&] {
    return source_->Value("SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1",
                          {capture::SlotNameFor(options_.name)});
  };
  const auto before = walsender();
  store_->Execute("BEGIN; LOCK TABLE tidemark_current.d1");
  source_->Execute(Insert(1, 3000));
  std::this_thread::sleep_for(6s);
  store_->Execute("COMMIT");
  ExpectAllSame();
  EXPECT_EQ(walsender(), before);
}

TEST_F(Streamed, ATableThatIsReadWholeMeanwhile) {
  auto session = Session();
  auto before = StreamedCount();
  session.Execute("BEGIN");
  session.Execute(Insert(1, 2000));
  AwaitStreamed(before);
  store_->Execute("SELECT tidemark.request_resync(d.id, 'test') FROM tidemark.dataset d");
  CatchUp();
  session.Execute(Insert(2001, 2500));
  session.Execute("COMMIT");
  source_->Execute("UPDATE t SET x = -1 WHERE id < 10");
  const auto deadline = base::Deadline::After(60s);
  while (store_->Value("SELECT count(*) FROM tidemark.resync WHERE ended_at IS NULL") != "0") {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(50ms);
  }
  ExpectAllSame();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "2501");
}

}  // namespace
}  // namespace tidemark::tests
