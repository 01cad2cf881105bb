// A source that changes under its mirror: columns, names, tables that come and go, rows that change
// without being sent, slots that are lost. The mirror follows without a reset, and history stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/postgres/preflight.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class SourceChanges : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, x int, y text); "
        "INSERT INTO t SELECT i, i, 'y' || i FROM generate_series(1, 100) i; "
        "CREATE TABLE other (id int PRIMARY KEY, n int); INSERT INTO other VALUES (1, 1); "
        "CREATE PUBLICATION tidemark FOR ALL TABLES");
    Start();
    CatchUp();
    before_ = CatchUp();  // beyond the place of the slot
  }
  /// Waits until the store answers `sql` as the source does.
  void ExpectSoon(const std::string& sql) {
    const auto deadline = base::Deadline::After(60s);
    std::string wanted, got;
    do {
      wanted = Answer(*source_, sql);
      FlushSource();
      got = Answer(*store_, sql);
      if (got == wanted && failure_.empty()) return;
      std::this_thread::sleep_for(50ms);
    } while (!deadline.passed() && failure_.empty());
    ADD_FAILURE() << sql << "\nsource:\n" << wanted << "store:\n" << got << failure_ << Problems();
  }
  std::string Problems() {
    return store_->Value("SELECT string_agg(problems::text, ' ') FROM tidemark.progress");
  }
  /// Errors are answers, too: a table that is not there yet.
  std::string Answer(pg::Connection& on, const std::string& sql) {
    try {
      return Rows(on, sql);
    } catch (const base::Error& error) {
      if (error.IsConnectionLoss()) throw;
      return error.message() + "\n";
    }
  }
  std::string AsOf(const std::string& lsn, const std::string& what, const std::string& table = "t") {
    return Rows(*store_, "SELECT " + what + " FROM tidemark.as_of_position(NULL::public." + table +
                             ", '" + lsn + "')");
  }
  std::string Syncs() { return store_->Value("SELECT count(*) FROM tidemark.resync"); }

  std::string before_;
};

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

TEST_F(SourceChanges, APublicationThatIsDroppedAndMadeAgainMissesNothing) {
  source_->Execute("DROP PUBLICATION tidemark");
  source_->Execute("UPDATE t SET x = -x WHERE id <= 10; DELETE FROM t WHERE id = 11");
  std::this_thread::sleep_for(500ms);
  source_->Execute("UPDATE other SET n = 2");
  source_->Execute("CREATE PUBLICATION tidemark FOR ALL TABLES");
  source_->Execute("UPDATE t SET x = 0 WHERE id = 12");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT * FROM other ORDER BY id");
  source_->Execute("UPDATE t SET x = 1 WHERE id = 12");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*), sum(x)"), "100|5050\n");
}

TEST_F(SourceChanges, ATableThatWasNotPublishedForAWhileIsReadAgain) {
  source_->Execute("DROP PUBLICATION tidemark; CREATE PUBLICATION tidemark FOR TABLE t, other");
  ExpectSoon("SELECT count(*) FROM t");
  CatchUp();
  // Faster than anybody looks.
  source_->Execute("ALTER PUBLICATION tidemark DROP TABLE t");
  source_->Execute("UPDATE t SET x = 3000 WHERE id = 3");
  source_->Execute("ALTER PUBLICATION tidemark ADD TABLE t");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  source_->Execute("ALTER PUBLICATION tidemark SET (publish = 'insert')");
  source_->Execute("DELETE FROM t WHERE id = 5");
  source_->Execute("ALTER PUBLICATION tidemark SET (publish = 'insert, update, delete, truncate')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  // For long enough to be seen.
  source_->Execute("ALTER PUBLICATION tidemark DROP TABLE t");
  source_->Execute("DELETE FROM t WHERE id = 6");
  const auto deadline = base::Deadline::After(30s);
  while (Problems().find("is not published any more") == std::string::npos) {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(50ms);
  }
  source_->Execute("ALTER PUBLICATION tidemark ADD TABLE t");
  ExpectSoon("SELECT * FROM t ORDER BY id");
}

TEST_F(SourceChanges, ATableThatIsMadeAgainWithItsColumnsInAnotherOrder) {
  source_->Execute("DROP TABLE t; CREATE TABLE t (y text, x int, id int PRIMARY KEY, more int); "
                   "INSERT INTO t SELECT 'again', i, i, i FROM generate_series(90, 110) i");
  ExpectSoon("SELECT id, x, y, more FROM t ORDER BY id");
  source_->Execute("UPDATE t SET x = -1 WHERE id = 100; UPDATE t SET id = 200 WHERE id = 101; "
                   "DELETE FROM t WHERE id = 102; INSERT INTO t VALUES ('new', 7, 7, 7)");
  ExpectSoon("SELECT id, x, y, more FROM t ORDER BY id");
  source_->Execute("ALTER TABLE t ADD last text DEFAULT 'l'; UPDATE t SET last = 'u' WHERE id = 7; "
                   "ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET x = -2 WHERE id < 95");
  ExpectSoon("SELECT id, x, y, more, last FROM t ORDER BY id");
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
  source_->Execute("ALTER TABLE t DROP x; ALTER TABLE t ADD x int; INSERT INTO t VALUES (101, 'y', 1)");
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

TEST_F(SourceChanges, NotNullIsShownAsTheSourceHasIt) {
  const std::string nullable =
      "SELECT a.attname, a.attnotnull FROM pg_attribute a WHERE a.attrelid = 'public.t'::regclass "
      "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
  source_->Execute("ALTER TABLE t ALTER x SET NOT NULL");
  ExpectSoon(nullable);
  source_->Execute("ALTER TABLE t ADD z int NOT NULL DEFAULT 7; INSERT INTO t VALUES (101, 1, 'y')");
  ExpectSoon(nullable);
  source_->Execute("ALTER TABLE t RENAME z TO w; ALTER TABLE t ALTER w DROP NOT NULL, ALTER y SET NOT "
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

TEST_F(SourceChanges, TablesThatInheritAreTablesOfTheirOwnAndTheirParentIsNamed) {
  const auto await_note = [this](const std::string& table) {
    const auto deadline = base::Deadline::After(30s);
    const auto wanted = "\"table\": \"public." + table + "\"";
    while (!deadline.passed() && Problems().find(wanted) == std::string::npos) {
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_THAT(Problems(), HasSubstr(wanted));
    EXPECT_THAT(Problems(), HasSubstr("shows its own rows only"));
  };
  source_->Execute("CREATE TABLE heir (extra text, PRIMARY KEY (id)) INHERITS (t); "
                   "INSERT INTO heir VALUES (901, 1, 'heir', 'e')");
  ExpectSoon("SELECT * FROM heir ORDER BY id");
  await_note("t");
  // What the parent shows is what ONLY shows at the source, before and after changes of either.
  source_->Execute("UPDATE t SET y = 'all' WHERE id IN (1, 901); INSERT INTO heir VALUES (902, 2, 'h', 'f')");
  CatchUp();
  ExpectSame("SELECT * FROM heir ORDER BY id");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"),
            Rows(*source_, "SELECT * FROM ONLY t ORDER BY id"));
  EXPECT_EQ(AsOf(CatchUp(), "count(*)"), "100\n");
  // A column goes to the heirs, too; a table may become one later.
  source_->Execute("ALTER TABLE t ADD z int DEFAULT 3; UPDATE t SET z = z + id WHERE id > 99; "
                   "CREATE TABLE second (id int PRIMARY KEY, n int); ALTER TABLE second INHERIT other");
  ExpectSoon("SELECT * FROM heir ORDER BY id");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"),
            Rows(*source_, "SELECT * FROM ONLY t ORDER BY id"));
  await_note("other");
  source_->Execute("ALTER TABLE second NO INHERIT other");
  const auto deadline = base::Deadline::After(30s);
  while (!deadline.passed() && Problems().find("public.other") != std::string::npos) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_THAT(Problems(), ::testing::Not(HasSubstr("public.other")));
}

TEST_F(SourceChanges, NewTablesAreCopiedWithRowsOfOlderTransactions) {
  auto older = Cluster::SharedSource().Connect(source_->Value("SELECT current_database()"));
  source_->Execute("CREATE TABLE late (id int PRIMARY KEY, v text)");
  older.Execute("BEGIN; INSERT INTO late VALUES (1, 'older')");
  source_->Execute("INSERT INTO late SELECT i, 'r' FROM generate_series(10, 5000) i");
  std::this_thread::sleep_for(2500ms);  // by now the copy waits for the older transaction
  older.Execute("INSERT INTO late VALUES (2, 'older'); COMMIT");
  source_->Execute("UPDATE late SET v = 'after' WHERE id = 10; INSERT INTO late VALUES (3, 'after')");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  source_->Execute("DELETE FROM late WHERE id > 4000");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.late WHERE system_from IS NULL"), "0");
  try {
    AsOf(before_, "count(*)", "late");
    ADD_FAILURE() << "there was no such table then";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().str(), "22008") << error.Full();
  }
}

TEST_F(SourceChanges, ManyTablesAreReadAgainAFewAtATime) {
  for (int i = 1; i <= 20; ++i) {
    source_->Execute("CREATE TABLE many" + std::to_string(i) +
                     " AS SELECT g AS id FROM generate_series(1, 200) g; ALTER TABLE many" +
                     std::to_string(i) + " ADD PRIMARY KEY (id)");
  }
  ExpectSoon("SELECT count(*) FROM many20");
  CatchUp();
  Stop();
  source::DropSlot(*source_, capture::SlotNameFor(options_.name), base::Deadline::After(20s));
  source_->Execute("DELETE FROM many20 WHERE id > 100");
  Start();
  const auto deadline = base::Deadline::After(60s);
  int most = 0;
  while (store_->Value("SELECT count(*) FROM tidemark.resync WHERE ended_at IS NOT NULL") != "22") {
    ASSERT_FALSE(deadline.passed()) << Problems();
    most = std::max(most, std::stoi(source_->Value("SELECT count(*) FROM pg_replication_slots "
                                                   "WHERE temporary AND database = "
                                                   "current_database()")));
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 3);
  ExpectSoon("SELECT count(*) FROM many20");
  ExpectSoon("SELECT * FROM t ORDER BY id");
}

TEST_F(SourceChanges, TableDroppedAndMadeAgainIsItsNewIncarnation) {
  source_->Execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, y text, fresh int); "
                   "INSERT INTO t SELECT i, 'new', i FROM generate_series(50, 60) i");
  ExpectSoon("SELECT id, y, fresh FROM t ORDER BY id");
  source_->Execute("INSERT INTO t VALUES (61, 'newer', 1)");
  ExpectSoon("SELECT id, y, fresh FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
}

TEST_F(SourceChanges, TablesSwappedByRenameKeepTheirRowsAndHistory) {
  source_->Execute("CREATE TABLE stage (id int PRIMARY KEY, x int); INSERT INTO stage VALUES (1, 42)");
  ExpectSoon("SELECT * FROM stage ORDER BY id");
  source_->Execute("BEGIN; ALTER TABLE t RENAME TO old; ALTER TABLE stage RENAME TO t; COMMIT; "
                   "INSERT INTO t VALUES (2, 43); INSERT INTO old VALUES (500, 5, 'late')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT * FROM old ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.old"), "101");
}

TEST_F(SourceChanges, SchemaIsRenamed) {
  source_->Execute("CREATE SCHEMA a; ALTER TABLE t SET SCHEMA a; INSERT INTO a.t VALUES (900, 1, 'a')");
  ExpectSoon("SELECT * FROM a.t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT to_regclass('public.t') IS NULL"), "t");
}

TEST_F(SourceChanges, TruncateIsNoReasonToReadTheTableAgain) {
  source_->Execute("TRUNCATE t; INSERT INTO t VALUES (1, 1, 'again')");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  std::this_thread::sleep_for(2500ms);  // two looks at the source
  EXPECT_EQ(Syncs(), "0");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
}

TEST_F(SourceChanges, KeyChanges) {
  source_->Execute("ALTER TABLE t ADD k text; UPDATE t SET k = 'k' || id; ALTER TABLE t ALTER k SET NOT NULL; "
                   "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (k); "
                   "UPDATE t SET x = 7 WHERE k = 'k5'; DELETE FROM t WHERE k = 'k6'; "
                   "UPDATE t SET k = 'moved' WHERE k = 'k7'");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
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
  source_->Execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE m (id int PRIMARY KEY, v mood); "
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

TEST_F(SourceChanges, PartitionsComeAndGoAndAreReadAgain) {
  source_->Execute("CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id); "
                   "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100); "
                   "INSERT INTO p SELECT i, 'a' FROM generate_series(1, 50) i; "
                   "ALTER PUBLICATION tidemark SET (publish_via_partition_root = true)");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  source_->Execute("CREATE TABLE p2 (v text, id int PRIMARY KEY); INSERT INTO p2 VALUES ('b', 150); "
                   "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200)");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  source_->Execute("ALTER TABLE p DETACH PARTITION p1");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  source_->Execute("TRUNCATE p2");
  ExpectSoon("SELECT * FROM p ORDER BY id");
}

TEST_F(SourceChanges, UnloggedTableIsListedAndCopiedOnceItIsLogged) {
  Stop();
  source_->Execute("CREATE UNLOGGED TABLE u (id int PRIMARY KEY, v text); "
                   "INSERT INTO u SELECT i, 'unlogged' FROM generate_series(1, 50) i");
  auto inspected = pg::Connection::Open({.dsn = options_.source_dsn, .settings = {{"search_path", ""}}},
                                        base::Deadline::After(20s));
  const auto report = source::Preflight(inspected, {.slot = capture::SlotNameFor(options_.name)});
  EXPECT_THAT(source::FormatProblems(report.problems), HasSubstr("unlogged table: the stream does not"));
  Start();
  source_->Execute("INSERT INTO t VALUES (101, 1, 'beside')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT to_regclass('u') IS NULL"), "t");
  source_->Execute("ALTER TABLE u SET LOGGED; INSERT INTO u VALUES (51, 'logged')");
  ExpectSoon("SELECT * FROM u ORDER BY id");
  source_->Execute("UPDATE u SET v = 'followed' WHERE id = 1");
  ExpectSoon("SELECT * FROM u ORDER BY id");
}

TEST_F(SourceChanges, LostSlotIsMadeGoodAndHistoryStays) {
  Stop();
  source::DropSlot(*source_, capture::SlotNameFor(options_.name), base::Deadline::After(20s));
  source_->Execute("DELETE FROM t WHERE id <= 10; UPDATE t SET x = 0 WHERE id BETWEEN 11 AND 20; "
                   "INSERT INTO t SELECT i, i, 'new' FROM generate_series(201, 210) i; "
                   "UPDATE other SET n = 2");
  Start();
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT * FROM other ORDER BY id");
  EXPECT_EQ(AsOf(before_, "count(*)"), "100\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id <= 10 AND tx_to IS NOT NULL"),
            "10");
  EXPECT_EQ(Rows(*store_, "SELECT count(*), count(DISTINCT basis) FROM tidemark.resync r "
                          "JOIN tidemark.basis_member m ON m.dataset = r.dataset "
                          "JOIN tidemark.basis b ON b.number = m.basis AND b.capture = r.capture"),
            "2|1\n");
  EXPECT_THAT(store_->Value("SELECT reason FROM tidemark.resync LIMIT 1"),
              HasSubstr("does not exist any more"));
  source_->Execute("INSERT INTO t VALUES (999, 9, 'on')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
}

TEST_F(SourceChanges, FiltersAndColumnListsThatChangeAreObeyed) {
  if (source_->server_version() < 150000) GTEST_SKIP() << "row filters exist from PostgreSQL 15 on";
  source_->Execute("CREATE TABLE f (id int PRIMARY KEY, n int); INSERT INTO f SELECT i, i FROM "
                   "generate_series(1, 20) i; DROP PUBLICATION tidemark; "
                   "CREATE PUBLICATION tidemark FOR TABLE t, other, f WHERE (id > 10)");
  ExpectSoon("SELECT id, n FROM f WHERE id > 10 ORDER BY id");
  source_->Execute("ALTER PUBLICATION tidemark SET TABLE t, other, f WHERE (id > 5)");
  ExpectSoon("SELECT id, n FROM f WHERE id > 5 ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM f"), "15");
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

TEST_F(SourceChanges, TableThatCannotBeFollowedStandsStillAndTheOthersGoOn) {
  store_->Execute("CREATE VIEW mine AS SELECT count(*) FROM public_history.t");
  source_->Execute("ALTER TABLE t ALTER x TYPE bigint USING x * 2");
  const auto deadline = base::Deadline::After(30s);
  while (!deadline.passed() && Problems().find("2BP01") == std::string::npos) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_THAT(Problems(), HasSubstr("public.t"));
  EXPECT_EQ(store_->Value("SELECT sum(x) FROM t"), "5050");
  source_->Execute("INSERT INTO other VALUES (2, 2); UPDATE t SET y = '' WHERE id = 1");
  ExpectSoon("SELECT * FROM other ORDER BY id");
  store_->Execute("DROP VIEW mine");
  ExpectSoon("SELECT id, x, y FROM t ORDER BY id");
  const auto cleared = base::Deadline::After(30s);
  while (!cleared.passed() && Problems() != "[]") std::this_thread::sleep_for(50ms);
  EXPECT_EQ(Problems(), "[]");
}

TEST_F(SourceChanges, TableTakenOutOfThePublicationIsFrozenAndReported) {
  source_->Execute("DROP PUBLICATION tidemark; CREATE PUBLICATION tidemark FOR TABLE t");
  const auto deadline = base::Deadline::After(30s);
  while (!deadline.passed() && Problems().find("is not published any more") == std::string::npos) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_THAT(Problems(), HasSubstr("public.other"));
  source_->Execute("INSERT INTO t VALUES (777, 7, 'on')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM other"), "1");
}

}  // namespace
}  // namespace tidemark::tests
