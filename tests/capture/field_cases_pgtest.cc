// What goes wrong for people who mirror live databases, where no other test has it already;
// docs/field-cases.md lists them all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

class FieldCases : public MirrorFixture {
 protected:
  std::string Slot() { return capture::SlotNameFor(options_.name); }
  std::string Confirmed() {
    return source_->Value(
        "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", {Slot()});
  }
  std::string Walsender() {
    return source_->Value("SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1",
                          {Slot()});
  }
  void ShortenSenderTimeout() {
    source_->Execute("ALTER DATABASE " + source_->Value("SELECT current_database()") +
                     " SET wal_sender_timeout = '2s'");
  }
  /// Until the store answers `sql` as the source does, or something like it.
  void ExpectSoon(const std::string& sql, const std::string& source_sql = "") {
    const auto deadline = base::Deadline::After(60s);
    std::string wanted, got;
    do {
      wanted = Rows(*source_, source_sql.empty() ? sql : source_sql);
      try {
        got = Rows(*store_, sql);
      } catch (const base::Error& error) {
        got = error.message();
      }
      if (got == wanted) return;
      std::this_thread::sleep_for(50ms);
    } while (!deadline.passed() && failure_.empty());
    ADD_FAILURE() << sql << "\nsource:\n" << wanted << "store:\n" << got << failure_;
  }
  std::string AsOf(const std::string& lsn, const std::string& what, const std::string& table) {
    return Rows(*store_, "SELECT " + what + " FROM tidemark.as_of_position(NULL::public." + table +
                             ", '" + lsn + "')");
  }
};

TEST_F(FieldCases, KeepalivesConfirmNothingThatTheStoreHasNotTaken) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE unpublished (v text); "
                   "CREATE PUBLICATION tidemark FOR TABLE t");
  ShortenSenderTimeout();
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (0)");
  CatchUp();
  auto stalled = Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  stalled.Execute("BEGIN; LOCK TABLE " +
                  store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset"));
  source_->Execute("INSERT INTO t VALUES (1)");
  const auto committed = source_->Value("SELECT pg_current_wal_insert_lsn()");
  source_->Execute("INSERT INTO unpublished VALUES ('x')");
  // Several keep-alives, and demands to answer them.
  const auto end = base::Deadline::After(5s);
  while (!end.passed()) {
    EXPECT_EQ(source_->Value("SELECT $1::pg_lsn < $2::pg_lsn", {Confirmed(), committed}), "t");
    std::this_thread::sleep_for(100ms);
  }
  stalled.Execute("ROLLBACK");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  Stop();
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t"), "2");
}

TEST_F(FieldCases, SlotOfAQuietMirrorMovesOnWhileAnotherDatabaseIsWrittenTo) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY)");
  Start();
  CatchUp();
  auto other = Cluster::SharedSource().Connect();
  other.Execute("CREATE TABLE IF NOT EXISTS busy (v text); "
                "INSERT INTO busy SELECT repeat('x', 500) FROM generate_series(1, 40000)");
  const auto written = source_->Value("SELECT pg_current_wal_insert_lsn()");
  const auto deadline = base::Deadline::After(30s);
  const auto passed = [&] {
    return source_->Value("SELECT $1::pg_lsn >= $2::pg_lsn", {Confirmed(), written}) == "t";
  };
  while (!deadline.passed() && !passed()) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(passed());
  // Status knows how much is held back.
  const auto known = base::Deadline::After(30s);
  const std::string told = "SELECT coalesce(retained_bytes >= 0, false) FROM tidemark.progress";
  while (!known.passed() && store_->Value(told) != "t") std::this_thread::sleep_for(50ms);
  EXPECT_EQ(store_->Value(told), "t");
}

TEST_F(FieldCases, ChangesOfOneTransactionFoldWithoutLosingTheirOrder) {
  source_->Execute(R"(
    CREATE TABLE t (id int PRIMARY KEY, u text UNIQUE, n int, big text);
    ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
    INSERT INTO t VALUES (1, 'a', 0, NULL), (2, 'b', 0, NULL), (3, 'c', 0, repeat('o', 9000)))");
  Start();
  CatchUp();
  CatchUp();
  const auto basis = store_->Value("SELECT max(tx) FROM tidemark.tx");
  source_->Execute(R"(
    BEGIN;
    INSERT INTO t VALUES (10, 'x', 0, NULL); DELETE FROM t WHERE id = 10;
    INSERT INTO t VALUES (11, 'y', 0, repeat('l', 9000)); UPDATE t SET n = 1 WHERE id = 11;
    UPDATE t SET n = 2 WHERE id = 11;
    DELETE FROM t WHERE id = 3; INSERT INTO t VALUES (3, 'c', 7, repeat('p', 9000));
    UPDATE t SET n = 8 WHERE id = 3;
    UPDATE t SET u = 'swap' WHERE id = 1; UPDATE t SET u = 'a' WHERE id = 2;
    UPDATE t SET u = 'b' WHERE id = 1;
    UPDATE t SET id = 100 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2;
    UPDATE t SET id = 2 WHERE id = 100;
    COMMIT)");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  // At most one version of a key, and none of what came and went.
  EXPECT_EQ(Rows(*store_, "SELECT id, count(*) FROM public_history.t WHERE tx_from > " + basis +
                              " GROUP BY id ORDER BY id"),
            "1|1\n2|1\n3|1\n11|1\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE tx_from >= tx_to"), "0");
}

TEST_F(FieldCases, LargeTransactionOfNoMirroredTableDoesNotCostTheConnection) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE unpublished (a int, b text); "
                   "INSERT INTO unpublished SELECT i, repeat('x', 50) FROM generate_series(1, "
                   "100000) i; "
                   "CREATE PUBLICATION tidemark FOR TABLE t");
  ShortenSenderTimeout();
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (1)");
  CatchUp();
  const auto walsender = Walsender();
  source_->Execute("BEGIN; UPDATE unpublished SET a = a + 1; UPDATE unpublished SET a = a + 1; "
                   "ALTER TABLE unpublished ALTER a TYPE bigint; INSERT INTO t VALUES (2); COMMIT");
  std::this_thread::sleep_for(3s);  // longer than the server waits for an answer
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(Walsender(), walsender);
}

TEST_F(FieldCases, PreparedTransactionsShowAtTheirCommitAndNeverWhenTheyAreRolledBack) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text)");
  Start();
  CatchUp();
  const auto name = source_->Value("SELECT current_database()");
  source_->Execute("BEGIN; INSERT INTO t VALUES (1, 'kept'); PREPARE TRANSACTION '" + name +
                   " kept'");
  source_->Execute("BEGIN; INSERT INTO t VALUES (2, 'given up'); PREPARE TRANSACTION '" + name +
                   " given up'");
  source_->Execute("INSERT INTO t VALUES (3, 'other')");
  CatchUp();
  EXPECT_EQ(store_->Value("SELECT string_agg(v, ',') FROM t"), "other");
  Stop();
  Start();
  source_->Execute("INSERT INTO t VALUES (4, 'between')");
  const auto before = CatchUp();
  EXPECT_EQ(store_->Value("SELECT string_agg(v, ',' ORDER BY id) FROM t"), "other,between");
  source_->Execute("COMMIT PREPARED '" + name + " kept'");
  source_->Execute("ROLLBACK PREPARED '" + name + " given up'");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  // Neither position nor time is that of the PREPARE.
  EXPECT_EQ(AsOf(before, "count(*)", "t"), "2\n");
  EXPECT_EQ(store_->Value("SELECT h.tx_from > (SELECT o.tx_from FROM public_history.t o WHERE o.id "
                          "= 4) "
                          "FROM public_history.t h WHERE h.id = 1"),
            "t");
}

TEST_F(FieldCases, LargeValueThatWasNotTouchedStaysUnderEveryIdentityAndNullStaysNull) {
  const std::vector<std::string> identities = {"DEFAULT", "FULL", "USING INDEX"};
  for (size_t i = 0; i < identities.size(); ++i) {
    const auto t = "t" + std::to_string(i);
    source_->Execute("CREATE TABLE " + t + " (id int PRIMARY KEY, k int NOT NULL, n int, big "
                                           "text); "
                     "CREATE UNIQUE INDEX " + t + "_k ON " + t + " (k); ALTER TABLE " + t +
                     " ALTER big SET STORAGE EXTERNAL; ALTER TABLE " + t + " REPLICA IDENTITY " +
                     identities[i] + (identities[i] == "USING INDEX" ? " " + t + "_k" : ""));
    source_->Execute("INSERT INTO " + t + " VALUES (1, 1, 0, repeat('b', 9000)), (2, 2, 0, NULL)");
  }
  Start();
  CatchUp();
  for (size_t i = 0; i < identities.size(); ++i) {
    const auto t = "t" + std::to_string(i);
    source_->Execute("UPDATE " + t + " SET n = 1");
    source_->Execute("UPDATE " + t + " SET id = id + 10, k = k + 10");
    source_->Execute("UPDATE " + t + " SET big = NULL WHERE n = 1 AND id = 11");
    source_->Execute("UPDATE " + t + " SET n = 2");
  }
  CatchUp();
  for (size_t i = 0; i < identities.size(); ++i) {
    const auto t = "t" + std::to_string(i);
    ExpectSame("SELECT * FROM " + t + " ORDER BY id");
    EXPECT_EQ(Rows(*store_, "SELECT id, n, big = repeat('b', 9000), big IS NULL FROM "
                            "public_history." +
                                t + " ORDER BY tx_from, id"),
              "1|0|t|f\n2|0|NULL|t\n1|1|t|f\n2|1|NULL|t\n11|1|t|f\n12|1|NULL|t\n11|1|NULL|t\n"
              "11|2|NULL|t\n12|2|NULL|t\n")
        << identities[i];
  }
}

TEST_F(FieldCases, KeyThatChangesEndsAsTheNewOneBegins) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1); "
                   "CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY RANGE (id); "
                   "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100); "
                   "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200); "
                   "INSERT INTO p VALUES (1, 1); CREATE PUBLICATION tidemark FOR TABLE t, p "
                   "WITH (publish_via_partition_root = true)");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (2, 2)");
  source_->Execute("UPDATE t SET id = id + 1000; UPDATE p SET id = "
                   "101");  // copied, streamed, moved
  source_->Execute("BEGIN; INSERT INTO t VALUES (3, 3); UPDATE t SET id = 1003 WHERE id = 3; "
                   "COMMIT");
  CatchUp();
  for (const std::string table : {"t", "p"}) {
    ExpectSame("SELECT * FROM " + table + " ORDER BY id");
    EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history." + table + " o "
                            "JOIN public_history." + table + " n "
                            "ON n.tx_from = o.tx_to AND n.n = o.n AND n.id > o.id"),
              table == "t" ? "2" : "1");
  }
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id = 3"), "0");
}

TEST_F(FieldCases, IdentityThatChangesInMidStreamIsTheMessages) {
  source_->Execute("CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1); "
                   "CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL, c int REFERENCES other); "
                   "CREATE UNIQUE INDEX t_b ON t (b); "
                   "INSERT INTO t SELECT i, 'b' || i, 1 FROM generate_series(1, 9) i");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET b = 'x1' WHERE a = 1; ALTER TABLE t REPLICA IDENTITY FULL; "
                   "UPDATE t SET b = 'x2' WHERE a = 2; DELETE FROM t WHERE a = 3; "
                   "ALTER TABLE t REPLICA IDENTITY USING INDEX t_b; "
                   "UPDATE t SET a = 40 WHERE a = 4; DELETE FROM t WHERE a = 5; "
                   "UPDATE t SET b = 'x6' WHERE a = 6; ALTER TABLE t REPLICA IDENTITY DEFAULT; "
                   "UPDATE t SET b = 'x7' WHERE a = 7; DELETE FROM t WHERE a = 8");
  ExpectSoon("SELECT * FROM t ORDER BY a");
  source_->Execute("DELETE FROM t WHERE a = 40; UPDATE t SET a = 90 WHERE a = 9");
  ExpectSoon("SELECT * FROM t ORDER BY a");
}

TEST_F(FieldCases, TruncateEndsAllRowsOfAllItsTablesAtOneInstant) {
  source_->Execute("CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); "
                   "CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE empty (id int PRIMARY KEY); "
                   "INSERT INTO a (n) SELECT generate_series(1, 50); "
                   "INSERT INTO b SELECT generate_series(1, 60)");
  Start();
  CatchUp();
  const auto before = CatchUp();
  source_->Execute("TRUNCATE a, b, empty RESTART IDENTITY");
  source_->Execute("INSERT INTO a (n) VALUES (7); INSERT INTO empty VALUES (1)");
  CatchUp();
  for (const char* table : {"a", "b", "empty"}) {
    ExpectSame(std::string("SELECT * FROM ") + table + " ORDER BY id");
  }
  EXPECT_EQ(AsOf(before, "count(*)", "a"), "50\n");
  EXPECT_EQ(AsOf(before, "count(*)", "b"), "60\n");
  EXPECT_EQ(store_->Value("SELECT count(DISTINCT tx_to) FROM (SELECT tx_to FROM public_history.a "
                          "UNION ALL SELECT tx_to FROM public_history.b) x"),
            "1");
}

TEST_F(FieldCases, LeavesOfSeveralLevelsComeMoveAndGo) {
  source_->Execute("CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id); "
                   "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) PARTITION BY RANGE "
                   "(id); "
                   "CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (0) TO (50); "
                   "CREATE TABLE p12 (v text, gone int, id int PRIMARY KEY); "
                   "ALTER TABLE p12 DROP gone; "
                   "ALTER TABLE p1 ATTACH PARTITION p12 FOR VALUES FROM (50) TO (100); "
                   "INSERT INTO p SELECT i, 'v' || i FROM generate_series(1, 99) i; "
                   "CREATE PUBLICATION tidemark FOR TABLE p WITH (publish_via_partition_root = "
                   "true)");
  Start();
  CatchUp();
  const auto before = CatchUp();
  ExpectSame("SELECT * FROM p ORDER BY id");
  source_->Execute("UPDATE p SET v = 'w' WHERE id IN (10, 60); DELETE FROM p WHERE id = 69; UPDATE "
                   "p SET "
                   "id = 69 WHERE id = 30; "
                   "DELETE FROM p WHERE id = 70");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  source_->Execute("DROP TABLE p12");
  ExpectSoon("SELECT * FROM p ORDER BY id");
  EXPECT_EQ(AsOf(before, "count(*)", "p"), "99\n");
}

TEST_F(FieldCases, PublicationOfNamedTablesFollowsTheTableNotItsName) {
  source_->Execute("CREATE TABLE live (id int PRIMARY KEY); INSERT INTO live VALUES (1); "
                   "CREATE TABLE stage (id int PRIMARY KEY); INSERT INTO stage VALUES (7); "
                   "CREATE PUBLICATION tidemark FOR TABLE live");
  Start();
  CatchUp();
  source_->Execute("BEGIN; ALTER TABLE live RENAME TO old; ALTER TABLE stage RENAME TO live; "
                   "COMMIT; "
                   "INSERT INTO old VALUES (2); INSERT INTO live VALUES (8)");
  ExpectSoon("SELECT * FROM old ORDER BY id");
  // What is not published is not there, rather than there and stale.
  EXPECT_EQ(store_->Value("SELECT to_regclass('public.live') IS NULL"), "t");
  source_->Execute("ALTER PUBLICATION tidemark ADD TABLE live");
  ExpectSoon("SELECT * FROM live ORDER BY id");
}

}  // namespace
}  // namespace tidemark::tests
