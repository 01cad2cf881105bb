// Tables that come, go, are renamed, made again or published in another way, and slots that are
// lost: the mirror follows without a reset, and history stays.
#include "source/postgres/preflight.h"
#include "tests/capture/source_changes_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

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

TEST_F(SourceChanges, NewTablesAreCopiedWithRowsOfOlderTransactions) {
  auto older = Cluster::SharedSource().Connect(source_->Value("SELECT current_database()"));
  source_->Execute("CREATE TABLE late (id int PRIMARY KEY, v text)");
  older.Execute("BEGIN; INSERT INTO late VALUES (1, 'older')");
  source_->Execute("INSERT INTO late SELECT i, 'r' FROM generate_series(10, 5000) i");
  std::this_thread::sleep_for(2500ms);  // by now the copy waits for the older transaction
  older.Execute("INSERT INTO late VALUES (2, 'older'); COMMIT");
  source_->Execute("UPDATE late SET v = 'after' WHERE id = 10; INSERT INTO late VALUES (3, "
                   "'after')");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  source_->Execute("DELETE FROM late WHERE id > 4000");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.late WHERE system_from IS NULL"),
            "0");
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
  source_->Execute("CREATE TABLE stage (id int PRIMARY KEY, x int); INSERT INTO stage VALUES (1, "
                   "42)");
  ExpectSoon("SELECT * FROM stage ORDER BY id");
  source_->Execute("BEGIN; ALTER TABLE t RENAME TO old; ALTER TABLE stage RENAME TO t; COMMIT; "
                   "INSERT INTO t VALUES (2, 43); INSERT INTO old VALUES (500, 5, 'late')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  ExpectSoon("SELECT * FROM old ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.old"), "101");
}

TEST_F(SourceChanges, SchemaIsRenamed) {
  source_->Execute("CREATE SCHEMA a; ALTER TABLE t SET SCHEMA a; INSERT INTO a.t VALUES (900, 1, "
                   "'a')");
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

TEST_F(SourceChanges, PartitionsComeAndGoAndAreReadAgain) {
  source_->Execute("CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id); "
                   "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100); "
                   "INSERT INTO p SELECT i, 'a' FROM generate_series(1, 50) i; "
                   "ALTER PUBLICATION tidemark SET (publish_via_partition_root = true)");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  source_->Execute("CREATE TABLE p2 (v text, id int PRIMARY KEY); INSERT INTO p2 VALUES ('b', "
                   "150); "
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
  auto inspected = pg::Connection::Open(
      {.dsn = options_.source_dsn, .settings = {{"search_path", ""}}}, base::Deadline::After(20s));
  const auto report = source::Preflight(inspected, {.slot = capture::SlotNameFor(options_.name)});
  EXPECT_THAT(source::FormatProblems(report.problems),
              HasSubstr("unlogged table: the stream does not"));
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
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id <= 10 AND tx_to IS NOT "
                          "NULL"),
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
