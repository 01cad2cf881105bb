// A mirror against a real source and a real store, both databases of one throwaway cluster.
#include "capture/mirror_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/impatient_server.h"
#include "tests/mirror_fixture.h"

namespace tidemark::capture {
namespace {

using namespace std::chrono_literals;

class Mirror : public tests::MirrorFixture {};

TEST_F(Mirror, CopiesThenFollowsAndRemembers) {
  source_->Execute(R"(
    CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, n numeric(10,2), big text);
    INSERT INTO t SELECT i, 'row ' || i, i / 3.0, repeat('x', i) FROM generate_series(1, 1000) i)");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  const auto before = CatchUp();
  source_->Execute("UPDATE t SET name = 'changed' WHERE id <= 10");
  source_->Execute("DELETE FROM t WHERE id = 11");
  source_->Execute("INSERT INTO t VALUES (2000, 'new', 1, NULL)");
  source_->Execute("UPDATE t SET id = 3000 WHERE id = 12");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.as_of_position(NULL::t, '" + before +
                          "') WHERE name LIKE 'row %'"),
            "1000");
  EXPECT_EQ(Rows(*store_, "SELECT id, name, tx_from < tx_to FROM public_history.t WHERE id IN (1, "
                          "11, 12, 3000) ORDER BY id, tx_from"),
            "1|row 1|t\n1|changed|NULL\n11|row 11|t\n12|row 12|t\n3000|row 12|NULL\n");
}

TEST_F(Mirror, ColumnsThatComeWhileTheFirstCopyWaitsForItsSlotAreCopiedWhole) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2); "
                   "CREATE TABLE other (id int PRIMARY KEY); CREATE FUNCTION seven() RETURNS int "
                   "LANGUAGE sql VOLATILE AS 'SELECT 7'");
  auto older = tests::Cluster::SharedSource().Connect(source_->Value("SELECT current_database()"));
  older.Execute("BEGIN; INSERT INTO other VALUES (1)");
  Start();
  const auto deadline = base::Deadline::After(30s);
  while (source_->Value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1",
                        {SlotNameFor(options_.name)}) == "0") {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(20ms);
  }
  source_->Execute("ALTER TABLE t ADD v int DEFAULT seven(), ADD w int DEFAULT 8");
  older.Execute("COMMIT");
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (3, 3, 3)");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(Mirror, KeepsUnchangedLargeValues) {
  source_->Execute(R"(
    CREATE TABLE t (id int PRIMARY KEY, n int, big text);
    ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
    INSERT INTO t SELECT i, 0, repeat(i::text, 9000) FROM generate_series(1, 4) i)");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET n = 1 WHERE id = 1");
  source_->Execute("BEGIN; UPDATE t SET n = 1 WHERE id = 2; UPDATE t SET n = 2 WHERE id = 2; "
                   "COMMIT; UPDATE t SET n = 3 WHERE id = 2");
  source_->Execute("UPDATE t SET id = 30 WHERE id = 3");
  source_->Execute("BEGIN; INSERT INTO t VALUES (5, 0, repeat('5', 9000)); "
                   "UPDATE t SET n = 7 WHERE id = 5; UPDATE t SET id = 50 WHERE id = 5; COMMIT");
  source_->Execute("UPDATE t SET big = NULL WHERE id = 4");
  source_->Execute("UPDATE t SET n = 9 WHERE id = 4");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE big IS NULL"), "2");
}

TEST_F(Mirror, TruncatesMixedWithInserts) {
  source_->Execute(R"(
    CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p);
    INSERT INTO p SELECT generate_series(1, 10); INSERT INTO c SELECT i, i FROM generate_series(1,
     10) i)");
  Start();
  CatchUp();
  const auto before = CatchUp();
  source_->Execute("BEGIN; INSERT INTO p VALUES (11); TRUNCATE p CASCADE; INSERT INTO p VALUES "
                   "(1), (12); "
                   "INSERT INTO c VALUES (5, 12); COMMIT");
  CatchUp();
  ExpectSame("SELECT * FROM p ORDER BY id");
  ExpectSame("SELECT * FROM c ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.as_of_position(NULL::p, '" + before +
                          "')"),
            "10");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.p WHERE tx_from = tx_to"), "0");
}

TEST_F(Mirror, TreatsRowsWithoutAKeyAsAMultiset) {
  source_->Execute(R"(
    CREATE TABLE d (a int, b text, j json, f float8); ALTER TABLE d REPLICA IDENTITY FULL;
    INSERT INTO d VALUES (1, 'x', '{"a": 1}', '-0'), (1, 'x', '{"a": 1}', '-0'), (2, NULL, NULL,
     'NaN'))");
  Start();
  CatchUp();
  source_->Execute("DELETE FROM d WHERE ctid = (SELECT min(ctid) FROM d WHERE a = 1)");
  CatchUp();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM d"), "2");
  source_->Execute("INSERT INTO d VALUES (1, 'x', '{\"a\": 1}', '-0')");
  source_->Execute("UPDATE d SET b = b");
  source_->Execute("UPDATE d SET b = 'y' WHERE a = 2");
  CatchUp();
  ExpectSame("SELECT a, b, j::text, f FROM d ORDER BY 1, 2, 3, 4");
  source_->Execute("DELETE FROM d WHERE a = 1");
  CatchUp();
  ExpectSame("SELECT a, b, j::text, f FROM d ORDER BY 1, 2, 3, 4");
}

TEST_F(Mirror, ResumesWhereItStopped) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
  Start();
  CatchUp();
  for (int i = 0; i < 5; ++i) {
    Stop();
    source_->Execute("UPDATE t SET n = n + 1; INSERT INTO t VALUES (" + std::to_string(i + 10) +
                     ", 0)");
    Start();
    source_->Execute("UPDATE t SET n = n + 1");
    CatchUp();
    ExpectSame("SELECT * FROM t ORDER BY id");
  }
  EXPECT_EQ(store_->Value("SELECT count(*) FROM (SELECT tx_to, lead(tx_from) OVER (PARTITION BY id "
                          "ORDER BY "
                          "tx_from) AS next FROM public_history.t) v WHERE next IS NOT NULL AND "
                          "tx_to <> next"),
            "0");
}

TEST_F(Mirror, TranslatesUserTypes) {
  source_->Execute(R"(
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TYPE pair AS (m mood, ms mood[], n numeric);
    CREATE DOMAIN posint AS int CHECK (VALUE > 0);
    CREATE TYPE span AS RANGE (subtype = float8);
    CREATE TABLE "Über ""T""" ("Id" bigint, "part" text, m mood, ms mood[], p pair, ps pair[],
     q posint, s span, PRIMARY KEY ("Id", "part"));
    INSERT INTO "Über ""T""" SELECT i, 'a', 'ok', '{sad,NULL,happy}', ROW('sad', '{ok}',
     1.50)::pair, ARRAY[ROW('ok', NULL, 2)::pair], 3, '[1,2)' FROM generate_series(1,3) i)");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM \"Über \"\"T\"\"\" ORDER BY 1");
  source_->Execute("UPDATE \"Über \"\"T\"\"\" SET ms = '{happy,happy}', ps = ps || "
                   "ROW('sad','{sad}',0)::pair WHERE \"Id\" = 2");
  source_->Execute("DELETE FROM \"Über \"\"T\"\"\" WHERE \"Id\" = 3");
  CatchUp();
  ExpectSame("SELECT * FROM \"Über \"\"T\"\"\" ORDER BY 1");
}

// Few changes are published where they were decoded, many on another thread while those of the next
// batch are.
struct Before {
  int commits, rows;
  size_t batch_changes;
};
class RefusedCommit : public Mirror, public ::testing::WithParamInterface<Before> {};
INSTANTIATE_TEST_SUITE_P(After, RefusedCommit,
                         ::testing::Values(Before{1, 1, 50'000}, Before{1, 500, 50'000},
                                           Before{5, 100, 150}));

TEST_P(RefusedCommit, StopsTheMirrorAndItResumes) {
  const auto [commits, rows, batch_changes] = GetParam();
  options_.batch_changes = batch_changes;
  const auto before = std::to_string(commits * rows);
  const auto insert = [&](int first) {
    for (int i = 0; i < commits; ++i) {
      source_->Execute(fmt::format("INSERT INTO t SELECT i, 1 FROM generate_series({}, {}) i",
                                   first + i * rows, first + (i + 1) * rows - 1));
    }
  };
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int)");
  Start();
  CatchUp();
  const auto current = store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset");
  store_->Execute("ALTER TABLE " + current + " ADD CONSTRAINT bad CHECK (n <> 13)");
  Stop();
  insert(101);
  source_->Execute("BEGIN; INSERT INTO t VALUES (2, 2); INSERT INTO t VALUES (7, 13); COMMIT");
  insert(10'001);
  source_->Execute("INSERT INTO t VALUES (3, 3)");
  Start();
  const auto deadline = base::Deadline::After(30s);
  std::string problem;
  while (!deadline.passed() && problem.find("id=7") == std::string::npos) {
    problem = store_->Value("SELECT coalesce((SELECT state || problems::text FROM "
                            "tidemark.progress), '')");
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(problem, ::testing::HasSubstr("failed"));
  EXPECT_THAT(problem, ::testing::HasSubstr("public.t, key id=7"));
  EXPECT_THAT(problem, ::testing::HasSubstr("23514"));
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t WHERE n = 1 AND id > 100"), before);
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), before) << "before it is readable, not more";
  store_->Execute("ALTER TABLE " + current + " DROP CONSTRAINT bad");
  const auto again = base::Deadline::After(30s);
  while (!again.passed() && store_->Value("SELECT max(id) = 3 FROM t WHERE id < 7") != "t") {
    std::this_thread::sleep_for(20ms);
  }
  ExpectSame("SELECT * FROM t ORDER BY id");
  const std::string status = "SELECT state || problems::text FROM tidemark.progress";
  while (!again.passed() && store_->Value(status) != "streaming[]") {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(store_->Value(status), "streaming[]");
}

// A third session, the test's own, shows that both servers do end what is idle.
TEST_F(Mirror, ServersThatEndWhatTakesLongOrIsIdleLeaveItsSessions) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); "
                   "CREATE TABLE other (id int PRIMARY KEY)");
  const auto source_name = source_->Value("SELECT current_database()");
  const auto store_name = store_->Value("SELECT current_database()");
  tests::MakeImpatient(*source_, 300ms);
  tests::MakeImpatient(*store_, 300ms);
  source_->Execute("BEGIN; INSERT INTO other VALUES (1)");
  Start();  // its slot waits for the transaction
  std::this_thread::sleep_for(1s);
  source_->Execute("COMMIT");
  CatchUp();
  const auto idle_source = tests::Cluster::SharedSource().Connect(source_name);
  const auto idle_store = tests::Cluster::Shared().Connect(store_name);
  std::this_thread::sleep_for(1500ms);
  source_->Execute("INSERT INTO t VALUES (1, 'after some rest')");
  CatchUp();
  ExpectSame("SELECT * FROM t");
  const std::string ended =
      "SELECT sessions_fatal FROM pg_stat_database WHERE datname = current_database()";
  for (auto* on : {&*source_, &*store_}) {
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed() && on->Value(ended) == "0") std::this_thread::sleep_for(20ms);
    EXPECT_EQ(on->Value(ended), "1") << "more than the test's own was ended";
  }
}

TEST_F(Mirror, ABacklogIsPublishedInBatchesOfWholeTransactions) {
  options_.batch_changes = 150;
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                   "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i");
  Start();
  CatchUp();
  const auto backlog = [&](const std::string& column) {
    Stop();
    for (int i = 0; i < 40; ++i) {
      source_->Execute(fmt::format("UPDATE t SET {} = {} WHERE id % 10 = {}", column, i + 1, i % 10));
    }
    Start();
    CatchUp();
    ExpectSame("SELECT * FROM t ORDER BY id");
  };
  backlog("n");
  EXPECT_EQ(store_->Value("SELECT max(puts) FROM tidemark.basis_member WHERE basis > 1"), "200")
      << "the second transaction fills a batch, and is published with it";
  EXPECT_EQ(store_->Value("SELECT max(n) FROM (SELECT count(DISTINCT cmin::text) AS n "
                          "FROM tidemark_history.d1 GROUP BY xmin::text) b"),
            "1")
      << "it was applied in parts, by several statements";
  source_->Execute("ALTER TABLE t ADD m int");
  backlog("m");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark_history.d1"), "8000");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM (SELECT tx_to, lead(tx_from) OVER (PARTITION BY id "
                          "ORDER BY tx_from) AS next FROM public_history.t) v WHERE tx_to <> next"),
            "0");
  EXPECT_EQ(Rows(*store_, "SELECT min(x), max(x), count(*) FROM (SELECT tx, (SELECT sum(n) FROM "
                          "tidemark.as_of_tx(NULL::t, tx)) - lag((SELECT sum(n) FROM "
                          "tidemark.as_of_tx(NULL::t, tx))) OVER (ORDER BY tx) AS x "
                          "FROM tidemark.tx WHERE tx <= 41) d"),
            "100|1000|41\n")
      << "each commit by itself";
}

TEST_F(Mirror, MirrorsTypesThatHaveNoBinaryForm) {
  source_->Execute(R"(
    CREATE EXTENSION seg;
    CREATE TABLE t (id int PRIMARY KEY, s seg);
    CREATE TABLE m (s seg, n int); ALTER TABLE m REPLICA IDENTITY FULL;
    INSERT INTO t VALUES (1, '1.5 .. 2'), (2, NULL);
    INSERT INTO m VALUES ('1 .. 2', 1), ('1 .. 2', 1), ('3', 2))");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET s = '5 .. 6' WHERE id = 1");
  source_->Execute("UPDATE t SET s = '5 .. 7' WHERE id = 1");
  source_->Execute("INSERT INTO t VALUES (3, '9')");
  source_->Execute("DELETE FROM m WHERE ctid = (SELECT min(ctid) FROM m WHERE n = 1)");
  source_->Execute("UPDATE m SET s = '4' WHERE n = 2");
  CatchUp();
  ExpectSame("SELECT s, n FROM m ORDER BY n, s::text");
  EXPECT_EQ(Rows(*source_, "SELECT id, s FROM t ORDER BY id"),
            store_->Execute("SELECT to_regclass('t')").is_null(0, 0)
                ? "t was left out"
                : Rows(*store_, "SELECT id, s FROM t ORDER BY id"));
}

TEST_F(Mirror, StoppedDuringTheFirstCopyItLeavesNothingBehind) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, a text); "
                   "INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 400000) i");
  Start();
  const auto deadline = base::Deadline::After(30s);
  const std::string copied =
      "SELECT coalesce((SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = "
      "to_regnamespace('tidemark_current') AND relkind = 'r'), 0) > 0";
  while (!deadline.passed() && store_->Value(copied) != "t") std::this_thread::sleep_for(1ms);
  Stop();
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.basis"), "0") << "it was too quick";
  EXPECT_EQ(source_->Value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '" +
                           SlotNameFor(options_.name) + "'"),
            "0");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM pg_class WHERE relnamespace = "
                          "'tidemark_current'::regnamespace"),
            "0");
  EXPECT_EQ(store_->Value("SELECT string_agg(state, ',') FROM tidemark.capture"), "abandoned");
  Start();
  CatchUp();
  ExpectSame("SELECT count(*), sum(id) FROM t");
}

TEST_F(Mirror, ABacklogOfManyRowTransactionsIsPublishedBatchByBatch) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                   "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i");
  Start();
  CatchUp();
  Stop();
  options_.batch_changes = 20'000;
  for (int i = 0; i < 60; ++i) source_->Execute("UPDATE t SET n = n + 1");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  // A full batch is published at the next commit, however long the stream goes on without a pause.
  EXPECT_EQ(store_->Value("SELECT max(puts) <= 21000 FROM tidemark.basis_member"), "t");
}

TEST_F(Mirror, PagesKeepRoomForUpdatesWhichIsThenUsedUp) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); "
                   "INSERT INTO t SELECT i, repeat('v', 60) FROM generate_series(1, 10000) i");
  Start();
  CatchUp();
  const auto current = store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset");
  EXPECT_EQ(store_->Value("SELECT reloptions @> '{fillfactor=90}' FROM pg_class WHERE oid = '" +
                          current + "'::regclass"), "t");
  store_->Execute("CREATE TABLE tighter WITH (fillfactor = 90) AS SELECT * FROM " + current);
  EXPECT_EQ(store_->Value("SELECT pg_relation_size('tighter') < pg_relation_size('" + current +
                          "')"), "t");
}

TEST_F(Mirror, AnIdleMirrorLetsTheSlotMoveOn) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE unmirrored (a text)");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO unmirrored SELECT repeat('x', 500) FROM generate_series(1, 20000)");
  const auto end = source_->Value("SELECT pg_current_wal_insert_lsn()");
  const auto deadline = base::Deadline::After(30s);
  const std::string passed = "SELECT confirmed_flush_lsn >= '" + end +
                             "' FROM pg_replication_slots WHERE slot_name = '" +
                             SlotNameFor(options_.name) + "'";
  while (!deadline.passed() && source_->Value(passed) != "t") std::this_thread::sleep_for(20ms);
  EXPECT_EQ(source_->Value(passed), "t") << "the slot holds back log that nobody needs";
  EXPECT_EQ(store_->Value("SELECT received_lsn >= '" + end + "' FROM tidemark.resume"), "t");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.basis"), "1");
}

TEST_F(Mirror, ASlowStoreDoesNotCostTheConnection) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
  source_->Execute("ALTER DATABASE " + source_->Value("SELECT current_database()") +
                   " SET wal_sender_timeout = '2s'");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET n = -1");
  CatchUp();
  const std::string walsender = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = '" +
                                SlotNameFor(options_.name) + "'";
  const auto pid = source_->Value(walsender);
  {
    pg::Transaction lock(*store_);
    store_->Execute("LOCK TABLE " +
                    store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset"));
    source_->Execute("UPDATE t SET n = 1");
    const auto end = base::Deadline::After(5s);
    while (!end.passed()) {
      EXPECT_EQ(source_->Value(walsender), pid) << "the walsender has given up";
      std::this_thread::sleep_for(100ms);
    }
  }
  CatchUp();
  ExpectSame("SELECT * FROM t");
  EXPECT_EQ(source_->Value(walsender), pid);
}

TEST_F(Mirror, UnderstandsOriginsAndPassesOverLogicalMessages) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY)");
  Start();
  CatchUp();
  const auto origin = "origin_" + options_.name;
  source_->Execute("SELECT pg_replication_origin_create('" + origin + "')");
  source_->Execute("SELECT pg_replication_origin_session_setup('" + origin + "')");
  source_->Execute("BEGIN; SELECT pg_replication_origin_xact_setup('0/AAAA', '2020-01-01 "
                   "00:00+00'); "
                   "INSERT INTO t VALUES (1); SELECT pg_logical_emit_message(true, 'p', 'inside'); "
                   "COMMIT");
  source_->Execute("SELECT pg_replication_origin_session_reset()");
  source_->Execute("SELECT pg_logical_emit_message(false, 'p', 'alone')");
  source_->Execute("INSERT INTO t VALUES (2)");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(Rows(*store_, "SELECT origin, commit_time, source_time > '2026-01-01' FROM tidemark.tx "
                          "WHERE tx = 2"),
            origin + "|2020-01-01 00:00:00+00|t\n");
  source_->Execute("SELECT pg_replication_origin_drop('" + origin + "')");
}

TEST_F(Mirror, FollowsEveryKindOfIdentity) {
  const std::string longest(63, 'n');
  source_->Execute(R"(
    CREATE TABLE by_index (a int PRIMARY KEY, b text NOT NULL, c int);
    CREATE UNIQUE INDEX by_index_b ON by_index (b);
    ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_b;
    CREATE TABLE full_key (id int PRIMARY KEY, n int, big text);
    ALTER TABLE full_key REPLICA IDENTITY FULL; ALTER TABLE full_key ALTER big SET STORAGE EXTERNAL;
    CREATE TABLE log_only (a int, b text);
    CREATE TABLE ")" + longest + R"(" ("Größe" int, "select" text, PRIMARY KEY ("select", "Größe"));
    INSERT INTO by_index VALUES (1, 'x', 1), (2, 'y', 2);
    INSERT INTO full_key VALUES (1, 0, repeat('b', 9000)); INSERT INTO log_only VALUES (1, 'a');
    CREATE PUBLICATION tidemark FOR TABLE by_index, full_key, ")" + longest + R"(";
    CREATE PUBLICATION other FOR TABLE log_only WITH (publish = 'insert'))");
  Start();
  CatchUp();
  source_->Execute("UPDATE by_index SET a = a + 10, c = 0");
  source_->Execute("UPDATE by_index SET b = 'z' WHERE b = 'x'");
  source_->Execute("DELETE FROM by_index WHERE a = 12");
  source_->Execute("UPDATE full_key SET n = 1");
  source_->Execute("UPDATE full_key SET id = 2");
  source_->Execute("INSERT INTO \"" + longest + "\" VALUES (1, 'a'), (2, 'a')");
  source_->Execute("UPDATE \"" + longest + "\" SET \"Größe\" = 3 WHERE \"Größe\" = 2");
  CatchUp();
  ExpectSame("SELECT * FROM by_index ORDER BY a");
  ExpectSame("SELECT * FROM full_key");
  ExpectSame("SELECT * FROM \"" + longest + "\" ORDER BY 1");
  EXPECT_EQ(store_->Value("SELECT to_regclass('log_only') IS NULL"), "t");
}

TEST_F(Mirror, ATableThatOnlyGrowsNeedsNoIdentity) {
  source_->Execute(R"(
    CREATE TABLE log_only (a int, b text); INSERT INTO log_only VALUES (1, 'a'), (1, 'a');
    CREATE PUBLICATION tidemark FOR TABLE log_only WITH (publish = 'insert, truncate'))");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO log_only VALUES (1, 'a'), (2, NULL)");
  CatchUp();
  ExpectSame("SELECT * FROM log_only ORDER BY a");
  source_->Execute("TRUNCATE log_only; INSERT INTO log_only VALUES (3, 'c')");
  CatchUp();
  ExpectSame("SELECT * FROM log_only ORDER BY a");
  EXPECT_EQ(store_->Value("SELECT keying FROM tidemark.dataset"), "append");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.log_only"), "5");
}

TEST_F(Mirror, RotatesKeysInOneTransaction) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, u text UNIQUE); INSERT INTO t VALUES (1, "
                   "'a'), (2, 'b')");
  Start();
  CatchUp();
  source_->Execute("BEGIN; UPDATE t SET id = 100 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2; "
                   "UPDATE t SET id = 2 WHERE id = 100; COMMIT");
  source_->Execute("BEGIN; UPDATE t SET u = 'tmp' WHERE id = 1; UPDATE t SET u = 'b' WHERE id = 2; "
                   "UPDATE t SET u = 'a' WHERE id = 1; COMMIT");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(Mirror, AppliesAHugeTransactionInPartsAndShowsItWhole) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM "
                   "generate_series(1, 50000) i");
  Start();
  CatchUp();
  source_->Execute("BEGIN; UPDATE t SET n = 1; UPDATE t SET n = n + 1 WHERE id % 2 = 0; DELETE "
                   "FROM t WHERE id > 49000; "
                   "INSERT INTO t SELECT i, 5 FROM generate_series(49500, 60000) i; COMMIT");
  CatchUp();
  ExpectSame("SELECT count(*), sum(id), sum(n) FROM t");
  EXPECT_EQ(store_->Value("SELECT count(DISTINCT tx_from) FROM public_history.t"), "2");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE tx_from = tx_to"), "0");
}

}  // namespace
}  // namespace tidemark::capture
