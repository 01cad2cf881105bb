// Another PostgreSQL asks the mirror through postgres_fdw and dblink: what it imports, what it
// pushes down, how it fetches, and what its transactions, errors and cancels do behind the gateway.
// Manual: postgres_fdw, dblink.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tests/gateway/foreign_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using PostgresFdw = ForeignFixture;
using Dblink = ForeignFixture;

TEST_F(PostgresFdw, ImportsExactlyTheMirroredTablesAsTheSourceWouldGiveThem) {
  local_->Execute(fmt::format(
      R"(
CREATE SERVER source FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '{}', port '5432', dbname '{}');
CREATE USER MAPPING FOR CURRENT_USER SERVER source OPTIONS (user 'postgres');
CREATE SCHEMA s;
IMPORT FOREIGN SCHEMA public FROM SERVER source INTO s;
)",
      Cluster::Shared().host(), mirror().source_->Value("SELECT current_database()")));
  const auto columns = [&](const std::string& schema) {
    return Rows(fmt::format(R"(
SELECT c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       co.collname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_collation co ON co.oid = a.attcollation
WHERE c.relnamespace = '{}'::regnamespace AND c.relkind = 'f' ORDER BY 1, 3)",
                            schema));
  };
  EXPECT_EQ(columns("m"), columns("s"));
  EXPECT_THAT(columns("m"), HasSubstr("small|name|2|character varying(20)|t|C\n"));
  EXPECT_EQ(Rows("SELECT relname FROM pg_class WHERE relnamespace = 'm'::regnamespace ORDER BY 1"),
            "big\none\nsmall\ntwo\n");
  for (const auto* table : {"small", "one", "big"}) {
    EXPECT_EQ(Rows(fmt::format("SELECT * FROM m.{} ORDER BY id", table)),
              Rows(fmt::format("SELECT * FROM s.{} ORDER BY id", table)));
  }
  // The past is imported like anything else: the views over all versions.
  local_->Execute("CREATE SCHEMA h; IMPORT FOREIGN SCHEMA public_history FROM SERVER tidemark INTO "
                  "h");
  EXPECT_EQ(Rows("SELECT count(*) FROM h.big WHERE tx_to IS NULL"), "30000\n");
}

TEST_F(PostgresFdw, PushesDownJoinsAggregatesAndSorts) {
  const std::string sql =
      "SELECT s.name, count(*), max(b.v) FROM big b JOIN small s ON s.id = b.k WHERE b.id > 100 "
      "GROUP BY s.name ORDER BY s.name LIMIT 5";
  for (const auto* remote : {"false", "true"}) {
    local_->Execute(fmt::format("ALTER SERVER tidemark OPTIONS ({} use_remote_estimate '{}')",
                                remote == std::string("true") ? "SET" : "ADD", remote));
    EXPECT_EQ(Rows(sql), mirror().Rows(*mirror().source_, sql));
  }
  EXPECT_THAT(Plan(sql), HasSubstr("Relations: Aggregate on ((m."));
  EXPECT_THAT(Plan(sql), HasSubstr("ORDER BY"));
  EXPECT_THAT(SentToStore(), HasSubstr("EXPLAIN SELECT"));
}

TEST_F(PostgresFdw, AnalyzeCountsEveryRow) {
  local_->Execute("ANALYZE big; ANALYZE small");
  EXPECT_EQ(Rows("SELECT reltuples FROM pg_class WHERE oid = 'm.big'::regclass"), "30000\n");
  EXPECT_EQ(Rows("SELECT n_distinct FROM pg_stats WHERE schemaname = 'm' AND tablename = 'big' AND "
                 "attname = 'k'"),
            "100\n");
}

TEST_F(PostgresFdw, FetchesOneRowOrTenThousandAtATime) {
  const std::string sql = "SELECT count(*), sum(length(v)), min(random()) < 2 FROM big WHERE id <= "
                          "{}";
  for (const auto& [size, rows] : {std::pair{1, 500}, {100, 30000}, {10000, 30000}}) {
    local_->Execute(fmt::format("ALTER FOREIGN TABLE big OPTIONS ({} fetch_size '{}')",
                                size == 1 ? "ADD" : "SET", size));
    EXPECT_EQ(Rows(fmt::format(fmt::runtime(sql), rows)), fmt::format("{}|{}|t\n", rows,
                                                                      rows * 32));
    EXPECT_THAT(SentToStore(), HasSubstr(fmt::format("FETCH {} FROM c", size)));
  }
}

// Newer postgres_fdw closes a cursor that it has to read again, older moves it back.
TEST_F(PostgresFdw, ReadsACursorAgain) {
  local_->Execute(R"(
CREATE TABLE numbers AS SELECT generate_series(1, 3) AS i;
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
ALTER FOREIGN TABLE big OPTIONS (ADD fetch_size '50'))");
  const std::string sql =
      "SELECT i, count(*), sum(b.id) FROM numbers LEFT JOIN (SELECT id FROM big WHERE id <= 120) b "
      "ON "
      "true GROUP BY i ORDER BY i";
  EXPECT_EQ(Rows(sql), "1|120|7260\n2|120|7260\n3|120|7260\n") << Plan(sql);
  EXPECT_THAT(SentToStore(), AnyOf(HasSubstr("MOVE BACKWARD ALL IN c"), HasSubstr("CLOSE c")));
  SqlClient client(ConnectionString());
  client.Simple("START TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  client.Simple("DECLARE c1 CURSOR FOR SELECT id FROM public.big WHERE id <= 120");
  const auto first = client.Simple("FETCH 50 FROM c1").rows;
  client.Simple("FETCH 50 FROM c1");
  EXPECT_EQ(client.Simple("MOVE BACKWARD ALL IN c1").Outcome(), "ok");
  EXPECT_EQ(client.Simple("FETCH 50 FROM c1").rows, first);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 50);
}

TEST_F(PostgresFdw, ErrorsInsideSavepointsUndoOnlyThose) {
  local_->Execute("BEGIN");
  EXPECT_EQ(Rows("SELECT n FROM one"), "0\n");
  local_->Execute("SAVEPOINT a");
  EXPECT_EQ(StateOf("SELECT * FROM one WHERE 1 / n = 1"), "22012");
  local_->Execute("ROLLBACK TO a");
  EXPECT_EQ(Rows("SELECT n FROM one"), "0\n");
  local_->Execute("SAVEPOINT b");
  EXPECT_EQ(StateOf("UPDATE one SET n = 5"), "25006");
  local_->Execute("ROLLBACK TO b; RELEASE a");
  EXPECT_EQ(Rows("SELECT n FROM two"), "0\n");
  local_->Execute("COMMIT");
  EXPECT_THAT(SentToStore(), HasSubstr("ROLLBACK TO SAVEPOINT s2"));
  EXPECT_EQ(Rows("SELECT n FROM one"), "0\n");
}

TEST_F(PostgresFdw, TwoTablesInOneLocalTransactionShowOneInstant) {
  local_->Execute("BEGIN");
  const auto one = Rows("SELECT n FROM one");
  Write("UPDATE one SET n = n + 1; UPDATE two SET n = n + 1");
  EXPECT_EQ(Rows("SELECT n FROM two"), one);
  EXPECT_EQ(Rows("SELECT one.n = two.n FROM one, two"), "t\n");
  local_->Execute("COMMIT");
  EXPECT_NE(Rows("SELECT n FROM one"), one);
  EXPECT_EQ(Rows("SELECT one.n = two.n FROM one, two"), "t\n");
  Write("UPDATE one SET n = 0; UPDATE two SET n = 0");
}

TEST_F(PostgresFdw, AppendsAsynchronously) {
  CreateServer("second", "", "m2");
  local_->Execute(R"(
ALTER SERVER tidemark OPTIONS (ADD async_capable 'true');
ALTER SERVER second OPTIONS (ADD async_capable 'true');
CREATE TABLE both_ways (id int, k int, v text) PARTITION BY LIST (k);
CREATE FOREIGN TABLE p1 PARTITION OF both_ways FOR VALUES IN (1) SERVER tidemark
  OPTIONS (schema_name 'public', table_name 'big');
CREATE FOREIGN TABLE p2 PARTITION OF both_ways FOR VALUES IN (2) SERVER second
  OPTIONS (schema_name 'public', table_name 'big'))");
  const std::string sql = "SELECT count(*), sum(length(v)) FROM both_ways WHERE length(v) + "
                          "random() > 0";
  EXPECT_THAT(Plan(sql), HasSubstr("Async Foreign Scan"));
  EXPECT_EQ(Rows(sql), "60000|1920000\n");
}

TEST_F(PostgresFdw, ALocalCancelEndsTheQueryOnTheStore) {
  mirror().store_->Execute(
      "CREATE OR REPLACE VIEW public.slow AS SELECT 1 AS x FROM pg_sleep(300); GRANT SELECT ON "
      "slow TO "
      "foreign_reader");
  local_->Execute("IMPORT FOREIGN SCHEMA public LIMIT TO (slow) FROM SERVER tidemark INTO m");
  std::string state;
  const auto pid = std::to_string(local_->server_pid());
  std::jthread asks([&] { state = StateOf("SELECT * FROM slow"); });
  EXPECT_EQ(AwaitSleeping("1"), "1");
  auto another = other().Connect();
  another.Execute("SELECT pg_cancel_backend($1::int)", {pid});
  asks.join();
  EXPECT_EQ(state, "57014");
  EXPECT_EQ(AwaitSleeping("0"), "0");
  EXPECT_EQ(Rows("SELECT n FROM two"), Rows("SELECT n FROM one"));
  mirror().store_->Execute("DROP VIEW public.slow");
}

TEST_F(PostgresFdw, APinnedServerShowsOneInstantForGood) {
  const auto then = mirror().Newest();
  std::string escaped;
  for (const char c : then) escaped += c == ' ' ? std::string("\\ ") : std::string(1, c);
  Write("UPDATE one SET n = 41; INSERT INTO two VALUES (2, 41)");
  CreateServer("past", fmt::format("options '-c tidemark.as_of={}'", escaped), "past");
  EXPECT_EQ(Rows("SELECT n FROM past.one"), "0\n");
  EXPECT_EQ(Rows("SELECT count(*) FROM past.two"), "1\n");
  EXPECT_EQ(Rows("SELECT n FROM m.one"), "41\n");
  EXPECT_EQ(Rows("SELECT o.n, t.n FROM past.one o JOIN past.two t USING (id)"), "0|0\n");
  EXPECT_EQ(Rows("SELECT is_now.n - was.n FROM m.one is_now JOIN past.one was USING (id)"), "41\n");
  EXPECT_EQ(StateOf("UPDATE past.one SET n = 1").substr(0, 2), "25");
  local_->Execute("ANALYZE past.big; ALTER SERVER past OPTIONS (ADD use_remote_estimate 'true')");
  EXPECT_EQ(Rows("SELECT count(*) FROM past.big WHERE id <= 20000"), "20000\n");
  Write("UPDATE one SET n = 0; DELETE FROM two WHERE id = 2");
}

TEST_F(PostgresFdw, ASnapshotTokenPinsAServerToo) {
  const auto token = mirror().store_->Value("SELECT tidemark.snapshot_token()");
  Write("UPDATE one SET n = 43");
  CreateServer("token", fmt::format("options '-c tidemark.snapshot={}'", token), "at_token");
  EXPECT_EQ(Rows("SELECT n FROM at_token.one"), "0\n");
  EXPECT_EQ(Rows("SELECT n FROM m.one"), "43\n");
  Write("UPDATE one SET n = 0");
}

TEST_F(Dblink, AsksForThePastInItsOwnWords) {
  const auto then = mirror().Newest();
  Write("UPDATE one SET n = 42");
  const auto ask = [&](const std::string& sql) {
    return fmt::format("SELECT * FROM dblink('{}', $q${}$q$) AS t(n int)", ConnectionString(), sql);
  };
  EXPECT_EQ(Rows(ask("SELECT n FROM one")), "42\n");
  EXPECT_EQ(Rows(ask(fmt::format("SELECT n FROM one FOR SYSTEM_TIME AS OF '{}'", then))), "0\n");
  EXPECT_EQ(StateOf(ask("SELECT n FROM one FOR SYSTEM_TIME AS OF '2001-01-01'")), "22008");
  EXPECT_EQ(StateOf(ask("SELECT 1 / 0")), "22012");
  Write("UPDATE one SET n = 0");
}

TEST_F(Dblink, CursorsAsynchronousQueriesAndCancelsWork) {
  const auto then = mirror().Newest();
  local_->Execute(fmt::format("SELECT dblink_connect('c', '{}')", ConnectionString()));
  local_->Execute(fmt::format(
      "SELECT dblink_open('c', 'past', $q$SELECT id FROM big FOR SYSTEM_TIME AS OF '{}' ORDER BY "
      "id$q$)",
      then));
  EXPECT_EQ(Rows("SELECT * FROM dblink_fetch('c', 'past', 2) AS t(id int)"), "1\n2\n");
  EXPECT_EQ(Rows("SELECT count(*) FROM dblink_fetch('c', 'past', 20000) AS t(id int)"), "20000\n");
  EXPECT_EQ(Rows("SELECT dblink_close('c', 'past')"), "OK\n");
  EXPECT_EQ(Rows("SELECT dblink_send_query('c', 'SELECT 7 FROM pg_sleep(0.1)')"), "1\n");
  EXPECT_EQ(Rows("SELECT * FROM dblink_get_result('c') AS t(n int)"), "7\n");
  EXPECT_EQ(Rows("SELECT * FROM dblink_get_result('c') AS t(n int)"), "");
  EXPECT_EQ(Rows("SELECT dblink_send_query('c', 'SELECT 7 FROM pg_sleep(300)')"), "1\n");
  EXPECT_EQ(AwaitSleeping("1"), "1");
  EXPECT_EQ(Rows("SELECT dblink_cancel_query('c')"), "OK\n");
  EXPECT_EQ(StateOf("SELECT * FROM dblink_get_result('c') AS t(n int)"), "57014");
  EXPECT_EQ(Rows("SELECT * FROM dblink_get_result('c') AS t(n int)"), "");
  EXPECT_EQ(StateOf("SELECT dblink_exec('c', 'DELETE FROM one')"), "25006");
  EXPECT_EQ(Rows("SELECT dblink_exec('c', 'SET work_mem = ''1MB''')"), "SET\n");
  EXPECT_EQ(Rows("SELECT dblink_disconnect('c')"), "OK\n");
}

}  // namespace
}  // namespace tidemark::tests
