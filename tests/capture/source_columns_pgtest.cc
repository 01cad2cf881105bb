// Columns, keys and types that change at the source, and rows that are rewritten with them: the
// mirror follows without a reset, and history stays.
#include "tests/capture/source_changes_fixture.h"

namespace tidemark::tests {
namespace {

TEST_F(SourceChanges, AddedColumnReadsItsDefaultFromThenOnAndNullBefore) {
  source_->Execute("ALTER TABLE t ADD d int DEFAULT 5, ADD e text");
  source_->Execute("ALTER TABLE t ALTER d SET DEFAULT 9");
  source_->Execute("INSERT INTO t (id, x, e) VALUES (101, 101, 'new')");
  source_->Execute("UPDATE t SET x = 0 WHERE id = 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), count(d)"), "100|0\n");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(SourceChanges, ColumnsAreFollowedThoughNoRowChanges) {
  source_->Execute("ALTER TABLE t ADD d int DEFAULT 5, ADD short varchar(10)");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  CatchUp();
  EXPECT_EQ(AsOf(before_, "count(*), count(d)"), "100|0\n");
  // The newest instant is as what is read without one.
  EXPECT_EQ(Rows(*store_, "SELECT count(d) FROM tidemark.as_of(NULL::public.t, (SELECT "
                          "max(system_time) FROM tidemark.basis))"),
            "100\n");
  source_->Execute("ALTER TABLE t RENAME d TO e; ALTER TABLE t DROP y; "
                   "ALTER TABLE t ALTER short TYPE varchar(20)");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
             "WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum");
  source_->Execute("UPDATE t SET short = 'twelve chars', e = 6 WHERE id = 4");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(SourceChanges, ColumnsThatComeAndGoBeforeAnybodyLooks) {
  Stop();
  source_->Execute("ALTER TABLE t ADD e int DEFAULT 1");
  source_->Execute("UPDATE t SET x = 1 WHERE id = 1");
  source_->Execute("ALTER TABLE t DROP e");
  source_->Execute("UPDATE t SET x = 2 WHERE id = 2");
  source_->Execute("ALTER TABLE t ADD e int DEFAULT 3");
  source_->Execute("UPDATE t SET x = 3, e = 4 WHERE id = 3");
  Start();
  ExpectSoon("SELECT * FROM t ORDER BY id");
  source_->Execute("UPDATE t SET e = 5 WHERE id = 5");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), sum(x)"), "100|5050\n");
}

TEST_F(SourceChanges, NamesOfColumnsAreSwappedAndHistoryFollows) {
  source_->Execute("ALTER TABLE t ADD z int; UPDATE t SET z = -id");
  CatchUp();
  const auto between = CatchUp();
  source_->Execute("ALTER TABLE t RENAME x TO tmp; ALTER TABLE t RENAME z TO x; "
                   "ALTER TABLE t RENAME tmp TO z; UPDATE t SET z = 7 WHERE id = 3");
  CatchUp();
  ExpectSame("SELECT id, x, z, y FROM t ORDER BY id");
  EXPECT_EQ(AsOf(between, "sum(z), sum(x)"), "5050|-5050\n");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(SourceChanges, ColumnDroppedAndAddedAgainStartsNull) {
  source_->Execute("ALTER TABLE t DROP x; ALTER TABLE t ADD x int; INSERT INTO t VALUES (101, 'y', "
                   "1)");
  source_->Execute("DELETE FROM t WHERE id = 1");
  CatchUp();
  ExpectSame("SELECT id, x, y FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), count(x)"), "100|0\n");
  // What was dropped stays with the versions that had it.
  EXPECT_EQ(store_->Value("SELECT _x FROM public_history.t WHERE id = 1"), "1");
}

TEST_F(SourceChanges, ColumnsChangeInTheMiddleOfATransaction) {
  source_->Execute("BEGIN; INSERT INTO t VALUES (201, 1, 'a'); ALTER TABLE t RENAME x TO x2; "
                   "INSERT INTO t VALUES (202, 2, 'b'); ALTER TABLE t ADD z int; "
                   "INSERT INTO t VALUES (203, 3, 'c', 4); COMMIT");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(SourceChanges, RewritingAlterIsReadWholeAsADifference) {
  source_->Execute("ALTER TABLE t ALTER x TYPE bigint USING x::bigint * 2");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  source_->Execute("UPDATE t SET x = 1 WHERE id = 2; DELETE FROM t WHERE id = 3");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
  EXPECT_EQ(store_->Value("SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                          "WHERE attrelid = 't'::regclass AND attname = 'x'"),
            "bigint");
}

TEST_F(SourceChanges, VolatileDefaultIsReadWhole) {
  source_->Execute("ALTER TABLE t ADD u uuid DEFAULT gen_random_uuid()");
  source_->Execute("UPDATE t SET y = 'touched' WHERE id = 1");
  ExpectSoon("SELECT id, x, y, u FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), count(u)"), "100|0\n");
}

TEST_F(SourceChanges, TransactionThatRewritesAndWritesIsNeverHalfVisible) {
  source_->Execute("BEGIN; UPDATE t SET x = 1000 WHERE id = 1; UPDATE other SET n = 1000; "
                   "ALTER TABLE t ALTER x TYPE bigint USING x + 1; "
                   "UPDATE t SET x = 2000 WHERE id = 2; COMMIT");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  ExpectSame("SELECT * FROM other");
  // No version of the first row says anything but what was and what is.
  EXPECT_EQ(Rows(*store_, "SELECT DISTINCT x FROM public_history.t WHERE id = 1 ORDER BY 1"),
            "1\n1001\n");
}

TEST_F(SourceChanges, WhatCameBeforeARewriteKeepsEachOfItsCommits) {
  Stop();
  // All of it comes in one batch.
  for (const char* x : {"10", "20", "30"}) {
    source_->Execute("UPDATE t SET x = " + std::string(x) + " WHERE id = 1");
  }
  source_->Execute("ALTER TABLE t ALTER x TYPE bigint USING x + 1");
  source_->Execute("UPDATE t SET x = 40 WHERE id = 1");
  Start();
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  EXPECT_EQ(Rows(*store_, "SELECT x FROM public_history.t WHERE id = 1 ORDER BY tx_from"),
            "1\n10\n20\n30\n40\n");
  EXPECT_EQ(Syncs(), "1");
}

// Nothing in the stream looks different, but no change finds its row.
TEST_F(SourceChanges, RowsRewrittenUnderTheirTypeAreReadAgainBeforeAnybodyLooked) {
  source_->Execute("CREATE TABLE d (a int, b text); ALTER TABLE d REPLICA IDENTITY FULL; "
                   "INSERT INTO d VALUES (1, 'one'), (1, 'one'), (2, 'two')");
  ExpectSoon("SELECT * FROM d ORDER BY a, b");
  Stop();
  source_->Execute("UPDATE d SET b = 'before' WHERE a = 2");
  source_->Execute("ALTER TABLE d ALTER a TYPE int USING a * 10");
  source_->Execute("DELETE FROM d WHERE a = 10");
  source_->Execute("UPDATE other SET n = 2");
  source_->Execute("ALTER TABLE t ALTER id TYPE int USING id + 1000");
  source_->Execute("UPDATE t SET x = 0 WHERE id = 1001");
  Start();
  ExpectSoon("SELECT * FROM d ORDER BY a, b");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  ExpectSame("SELECT * FROM other");
  EXPECT_EQ(Rows(*store_, "SELECT a, b FROM public_history.d WHERE b = 'before' ORDER BY tx_from"),
            "2|before\n20|before\n");
  source_->Execute("UPDATE t SET x = 1 WHERE id = 1001; INSERT INTO d VALUES (7, 'new')");
  CatchUp();
  ExpectSame("SELECT id, x, y FROM t ORDER BY id");
  ExpectSame("SELECT * FROM d ORDER BY a, b");
}

TEST_F(SourceChanges, NotNullIsShownAsTheSourceHasIt) {
  const std::string nullable =
      "SELECT a.attname, a.attnotnull FROM pg_attribute a WHERE a.attrelid = 'public.t'::regclass "
      "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
  source_->Execute("ALTER TABLE t ALTER x SET NOT NULL");
  ExpectSoon(nullable);
  source_->Execute("ALTER TABLE t ADD z int NOT NULL DEFAULT 7; INSERT INTO t VALUES (101, 1, "
                   "'y')");
  ExpectSoon(nullable);
  source_->Execute("ALTER TABLE t RENAME z TO w; ALTER TABLE t ALTER w DROP NOT NULL, ALTER y SET "
                   "NOT "
                   "NULL; INSERT INTO t VALUES (102, 1, 'y', 1)");
  ExpectSoon(nullable);
  source_->Execute("ALTER TABLE t ALTER x DROP NOT NULL");
  ExpectSoon(nullable);
  source_->Execute("UPDATE t SET x = NULL WHERE id = 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  // What is history has its NULLs, or none, whatever holds now.
  source_->Execute("UPDATE t SET x = 0 WHERE x IS NULL; ALTER TABLE t ALTER x SET NOT NULL");
  ExpectSoon(nullable);
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id = 1 AND x IS NULL"), "1");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(SourceChanges, NotNullThatIsDroppedAndBackBeforeAnybodyLookedHoldsNothingUp) {
  source_->Execute("ALTER TABLE t ALTER x SET NOT NULL");
  ExpectSoon("SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.t'::regclass AND "
             "attname = 'x'");
  Stop();
  source_->Execute("ALTER TABLE t ALTER x DROP NOT NULL; UPDATE t SET x = NULL WHERE id = 1");
  const auto between = source_->Value("SELECT pg_current_wal_insert_lsn()");
  source_->Execute("UPDATE t SET x = 5 WHERE id = 1; ALTER TABLE t ALTER x SET NOT NULL");
  Start();
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.t'::regclass AND "
             "attname = 'x'");
  EXPECT_EQ(AsOf(between, "count(*) FILTER (WHERE x IS NULL)"), "1\n");
}

TEST_F(SourceChanges, NotNullWaitsForReadersAndLeavesNothingBehindWhenItIsCutShort) {
  const std::string nullable = "SELECT attnotnull FROM pg_attribute WHERE attrelid = "
                               "'public.t'::regclass AND attname = 'x'";
  auto reader = Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  reader.Execute("BEGIN; SELECT count(*) FROM t");
  source_->Execute("ALTER TABLE t ALTER x SET NOT NULL");
  std::this_thread::sleep_for(1500ms);
  source_->Execute("UPDATE t SET x = 7 WHERE id = 1");
  ExpectSoon("SELECT x FROM t WHERE id = 1");
  EXPECT_EQ(store_->Value(nullable), "f");
  reader.Execute("COMMIT");
  ExpectSoon(nullable);
  // As if the process had been killed in the middle of it.
  Stop();
  store_->Execute("ALTER TABLE tidemark_current.d" +
                  store_->Value("SELECT id FROM tidemark.dataset WHERE table_name = 't'") +
                  " ADD CONSTRAINT tidemark_not_null CHECK (y IS NOT NULL) NOT VALID");
  Start();
  source_->Execute("UPDATE t SET y = NULL WHERE id = 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(SourceChanges, KeyChanges) {
  source_->Execute("ALTER TABLE t ADD k text; UPDATE t SET k = 'k' || id; ALTER TABLE t ALTER k "
                   "SET NOT NULL; "
                   "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (k); "
                   "UPDATE t SET x = 7 WHERE k = 'k5'; DELETE FROM t WHERE k = 'k6'; "
                   "UPDATE t SET k = 'moved' WHERE k = 'k7'");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
}

// The store's rows have NULL in the new key until they are read.
TEST_F(SourceChanges, KeyOnAColumnThatCameMeanwhileIsReadWhole) {
  Stop();
  source_->Execute("ALTER TABLE t ADD k text; UPDATE t SET k = 'k' || id; ALTER TABLE t ALTER k "
                   "SET NOT NULL; ALTER TABLE t DROP CONSTRAINT t_pkey; "
                   "ALTER TABLE t ADD PRIMARY KEY (k); "
                   "ALTER TABLE t ALTER x TYPE bigint USING x + 1");
  Start();
  ExpectSoon("SELECT * FROM t ORDER BY id");
  source_->Execute("UPDATE t SET x = 7 WHERE k = 'k5'; DELETE FROM t WHERE k = 'k6'");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), count(k), sum(x)"), "100|0|5050\n");
}

TEST_F(SourceChanges, TableWithoutAKeyIsReadAgainAsAMultiset) {
  source_->Execute("CREATE TABLE d (a int, b text); ALTER TABLE d REPLICA IDENTITY FULL; "
                   "INSERT INTO d VALUES (1, 'one'), (1, 'one'), (2, 'two')");
  ExpectSoon("SELECT * FROM d ORDER BY a, b");
  source_->Execute("ALTER TABLE d ALTER a TYPE bigint USING a * 10; DELETE FROM d WHERE ctid IN "
                   "(SELECT min(ctid) FROM d WHERE a = 10)");
  ExpectSoon("SELECT * FROM d ORDER BY a, b");
  source_->Execute("DELETE FROM d WHERE a = 10");
  ExpectSoon("SELECT * FROM d ORDER BY a, b");
}

TEST_F(SourceChanges, EnumLabelIsAddedAndRenamed) {
  source_->Execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE m (id int PRIMARY KEY, v "
                   "mood); "
                   "INSERT INTO m VALUES (1, 'sad'), (2, 'ok')");
  ExpectSoon("SELECT * FROM m ORDER BY id");
  const auto between = CatchUp();
  source_->Execute("ALTER TYPE mood ADD VALUE 'happy'");
  source_->Execute("INSERT INTO m VALUES (3, 'happy')");
  ExpectSoon("SELECT * FROM m ORDER BY id");
  source_->Execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'");
  ExpectSoon("SELECT * FROM m ORDER BY id");
  EXPECT_EQ(AsOf(between, "string_agg(v::text, ' ' ORDER BY id)", "m"), "sad ok\n");
}

TEST_F(SourceChanges, KeyOfAnotherTypeBeginsAnewWhereItsValuesCannotBeKept) {
  source_->Execute("ALTER TABLE t ALTER id TYPE text USING 'k' || id");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY x");
  const auto text = CatchUp();
  source_->Execute("ALTER TABLE t ALTER id TYPE int USING substr(id, 2)::int");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY x");
  source_->Execute("UPDATE t SET x = 0 WHERE id = 5; DELETE FROM t WHERE id = 6");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
  EXPECT_EQ(AsOf(text, "count(*)"), "100\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE _id LIKE 'k%'"), "100");
}

// On a source of its own, whose commits may have to wait for a standby that never comes.
class CommitsThatWait : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    options_.source_dsn = server_.CreateDatabase("shop");
    source_.emplace(server_.Connect("shop"));
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, x int, y text); "
                     "INSERT INTO t SELECT i, i, 'y' || i FROM generate_series(1, 10) i");
    Start();
    CatchUp();
  }
  void WaitFor(const std::string& standbys) {
    auto admin = server_.Connect();
    admin.Execute("ALTER SYSTEM SET synchronous_standby_names = '" + standbys + "'");
    admin.Execute("SELECT pg_reload_conf()");
    const auto deadline = base::Deadline::After(20s);
    while (server_.Connect().Value("SHOW synchronous_standby_names") != standbys) {
      ASSERT_FALSE(deadline.passed());
      std::this_thread::sleep_for(20ms);
    }
  }
  std::string Swapped() {
    try {
      return Rows(*store_, "SELECT x, z FROM t WHERE id = 3");
    } catch (const base::Error& error) {
      return error.message();
    }
  }

  Cluster server_{{}, false, SourceBinaries()};
};

// It is in the log and sent, but the catalog, which has another change to be looked at, does not
// show it to others yet.
TEST_F(CommitsThatWait, ColumnsStayAsTheyWereAnnounced) {
  source_->Execute("SET synchronous_commit = local");
  WaitFor("nobody");
  std::jthread waits([dsn = options_.source_dsn] {
    auto source = pg::Connection::Open({.dsn = dsn}, base::Deadline::After(20s));
    source.Execute("SET synchronous_commit = on");
    source.Execute("ALTER TABLE t ADD z int DEFAULT 7");
    source.Execute("BEGIN; ALTER TABLE t RENAME x TO tmp; ALTER TABLE t RENAME z TO x; "
                   "ALTER TABLE t RENAME tmp TO z; UPDATE t SET z = 1000 WHERE id = 3; COMMIT");
  });
  // The first of the two waits no longer, and the catalog shows it.
  const std::string waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  auto admin = server_.Connect();
  auto deadline = base::Deadline::After(20s);
  while (admin.Execute(waiting).rows() == 0) ASSERT_FALSE(deadline.passed());
  admin.Execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  deadline = base::Deadline::After(30s);
  while (Swapped() != "7|1000\n" && !deadline.passed()) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(Swapped(), "7|1000\n");
  deadline = base::Deadline::After(4s);  // the catalog is looked at once a second
  while (Swapped() == "7|1000\n" && !deadline.passed()) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(Swapped(), "7|1000\n");
  EXPECT_EQ(Rows(*source_, "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND "
                           "attnum = 2"),
            "x\n")
      << "the commit did not wait";
  WaitFor("");
  waits.join();
  CatchUp();
  ExpectSame("SELECT id, x, z, y FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.resync"), "0");
}

}  // namespace
}  // namespace tidemark::tests
