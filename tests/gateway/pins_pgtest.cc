// Sessions pinned by tidemark.as_of: what they read, for how long, and what they may not do.
#include <fmt/format.h>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;

class Pins : public TimeTravelFixture {
 protected:
  static std::string Pin(int n) { return "SET tidemark.as_of = " + At(n); }
  static std::string N(SqlClient& client) {
    return RowsOf(client, "SELECT n FROM t WHERE id = 1");
  }
  static SqlClient Pinned(int n) {
    SqlClient client = Client();
    EXPECT_EQ(client.Simple(Pin(n)).Outcome(), "ok");
    return client;
  }
};

TEST_F(Pins, EveryReferenceReadsThePinnedInstant) {
  SqlClient client = Pinned(1);
  EXPECT_EQ(N(client), "1\n");
  for (const char* sql : {
           "SELECT n FROM public.t WHERE id = 1",
           "SELECT public.t.n FROM public.t WHERE public.t.id = 1",
           "SELECT x.b FROM t AS x (a, b) WHERE a = 1",
           "SELECT n FROM ONLY t WHERE id = 1",
           "SELECT n FROM ONLY (t) WHERE id = 1",
           "SELECT n FROM t TABLESAMPLE BERNOULLI (100) WHERE id = 1",
           "SELECT n FROM t TABLESAMPLE SYSTEM (100) REPEATABLE (3) WHERE id = 1",
           "SELECT n FROM a_view WHERE id = 1",
           "SELECT (SELECT n FROM t WHERE id = 1)",
           "WITH t AS (SELECT * FROM t WHERE id = 1) SELECT n FROM t",
           "SELECT n FROM t WHERE id = 1 UNION SELECT n FROM a_view WHERE id = 1",
           "SELECT a.n FROM t a JOIN t b ON b.n = a.n AND b.id = a.id WHERE a.id = 1",
           "SELECT l.n FROM plain RIGHT JOIN t o ON true, LATERAL (SELECT n FROM t WHERE id = "
           "o.id) l "
           "WHERE o.id = 1",
           "SELECT n FROM public_history.t WHERE id = 1 AND tx_to IS NULL",
       }) {
    EXPECT_EQ(RowsOf(client, sql), "1\n") << sql;
  }
  EXPECT_EQ(RowsOf(client, "TABLE t ORDER BY id"), "1|1|a\n2|7|constant\n");
  EXPECT_EQ(client.Simple("COPY other.t (n) TO STDOUT").rows, "100\n");
  EXPECT_THAT(client.Simple("COPY t (n) TO STDOUT").rows, testing::AnyOf("1\n7\n", "7\n1\n"));
  EXPECT_EQ(client.Simple("COPY (SELECT n FROM t WHERE id = 1) TO STDOUT").rows, "1\n");
  EXPECT_EQ(RowsOf(client, "SELECT count(*) FROM t TABLESAMPLE BERNOULLI (0)"), "0\n");
  EXPECT_EQ(RowsOf(client, "SELECT sum(n) FROM other.t"), "100\n");
}

TEST_F(Pins, AClauseWinsOverThePin) {
  SqlClient client = Pinned(1);
  EXPECT_EQ(RowsOf(client, "SELECT b.n - a.n FROM t a JOIN t FOR SYSTEM_TIME AS OF " + At(3) +
                               " b USING (id) WHERE id = 1"),
            "2\n");
  EXPECT_EQ(RowsOf(client, "SELECT n FROM a_view FOR SYSTEM_TIME AS OF " + At(2) + " WHERE id = 1"),
            "2\n");
  EXPECT_EQ(RowsOf(client, "SELECT count(*) FROM t FOR SYSTEM_TIME ALL WHERE id = 1"), "4\n");
}

TEST_F(Pins, IsTransactionalAsAnySetting) {
  SqlClient client = Client();
  client.Simple("BEGIN");
  client.Simple("SET LOCAL tidemark.as_of = " + At(1));
  EXPECT_EQ(N(client), "1\n");
  client.Simple("COMMIT");
  EXPECT_EQ(N(client), "3\n");

  client.Simple("BEGIN");
  client.Simple(Pin(2));
  EXPECT_EQ(N(client), "2\n");
  client.Simple("SAVEPOINT s");
  client.Simple("SET LOCAL tidemark.as_of = " + At(0));
  EXPECT_EQ(N(client), "0\n");
  client.Simple("ROLLBACK TO s");
  EXPECT_EQ(N(client), "2\n");
  client.Simple("ROLLBACK");
  EXPECT_EQ(N(client), "3\n");

  EXPECT_EQ(client.Simple("SELECT set_config('tidemark.as_of', " + At(1) + ", false) IS NOT NULL")
                .rows,
            "t\n");
  EXPECT_EQ(N(client), "1\n");
  EXPECT_EQ(RowsOf(client, "SHOW tidemark.as_of"), InstantOf(1) + "\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(N(client), "3\n");
  client.Simple(Pin(1));
  client.Simple("RESET ALL");
  EXPECT_EQ(N(client), "3\n");
  client.Simple(Pin(1));
  client.Simple("DISCARD ALL");
  EXPECT_EQ(N(client), "3\n");
  client.Simple("SET tidemark.as_of = '   '");
  EXPECT_EQ(N(client), "3\n");
}

TEST_F(Pins, ComesWithStartUpOptionsRolesAndDatabases) {
  const std::string dsn = gateway().Dsn(mirror().database());
  std::string escaped = InstantOf(1);
  for (size_t at = escaped.find(' '); at != std::string::npos; at = escaped.find(' ', at + 3)) {
    escaped.insert(at, "\\\\");
  }
  SqlClient by_option(dsn + " options='-c tidemark.as_of=" + escaped + "'");
  EXPECT_EQ(N(by_option), "1\n");
  by_option.Simple(Pin(2));
  EXPECT_EQ(N(by_option), "2\n");
  by_option.Simple("RESET ALL");
  EXPECT_EQ(N(by_option), "1\n");
  by_option.Simple("SET tidemark.as_of = ''");
  EXPECT_EQ(N(by_option), "3\n");

  auto& store = *mirror().store_;
  store.Execute(fmt::format("ALTER ROLE gateway_reader IN DATABASE {} SET tidemark.as_of = {}",
                            mirror().database(), At(2)));
  SqlClient by_role = Client("gateway_reader");
  EXPECT_EQ(N(by_role), "2\n");
  store.Execute(fmt::format("ALTER ROLE gateway_reader IN DATABASE {} RESET tidemark.as_of",
                            mirror().database()));
  SqlClient unpinned = Client("gateway_reader");
  EXPECT_EQ(N(unpinned), "3\n");
}

TEST_F(Pins, StatementsPreparedBeforeObeyIt) {
  SqlClient client = Client();
  const std::string text = "SELECT n, $1::int FROM t WHERE id = $1::int";
  ASSERT_EQ(client.Prepare("s", text).Outcome(), "ok");
  EXPECT_EQ(client.Run("s", {"1"}).rows, "3|1\n");
  for (const int n : {1, 2, 0}) {
    client.Simple(Pin(n));
    for (int i = 0; i < 7; ++i) {
      const Answer answer = client.Run("s", {"1"});
      EXPECT_EQ(answer.Outcome(), "ok");
      EXPECT_EQ(answer.rows, std::to_string(n) + "|1\n");
    }
  }
  EXPECT_EQ(client.ParametersOf("s"), std::vector<Oid>{23});
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(client.Run("s", {"1"}).rows, "3|1\n");

  client.Simple(Pin(1));
  ASSERT_EQ(client.Prepare("p", text).Outcome(), "ok");
  EXPECT_EQ(client.Run("p", {"1"}).rows, "1|1\n");
  client.Simple("RESET tidemark.as_of");
  client.Simple("SELECT 1");
  EXPECT_EQ(client.Run("p", {"1"}).rows, "3|1\n");
  EXPECT_EQ(client.Run("p", {"1"}, /*binary=*/true).rows, "00000003|00000001\n");
}

TEST_F(Pins, MayBeSetByAPreparedStatement) {
  SqlClient client = Client();
  client.Prepare("pin", "SELECT set_config('tidemark.as_of', $1, false) IS NULL");
  client.Prepare("s", "SELECT n FROM t WHERE id = 1");
  client.Simple("PREPARE pin_in_sql (text) AS SELECT set_config('tidemark.as_of', $1, false)");
  for (const int n : {1, 2}) {
    EXPECT_EQ(client.Run("pin", {""}).rows, "f\n");
    EXPECT_EQ(client.Run("s").rows, "3\n");
    EXPECT_EQ(N(client), "3\n");
    EXPECT_EQ(client.Run("pin", {InstantOf(n)}).rows, "f\n");
    EXPECT_EQ(client.Run("s").rows, std::to_string(n) + "\n");
    EXPECT_EQ(N(client), std::to_string(n) + "\n");
  }
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(N(client), "3\n");
  client.Simple("EXECUTE pin_in_sql (" + At(1) + ")");
  EXPECT_EQ(N(client), "1\n");
}

TEST_F(Pins, PreparedStatementsWithAClauseObeyTheClause) {
  SqlClient client = Client();
  ASSERT_EQ(client.Prepare("c", "SELECT a.n, b.n FROM t FOR SYSTEM_TIME AS OF $1 a JOIN t b USING "
                                "(id) WHERE id = 1")
                .Outcome(),
            "ok");
  EXPECT_EQ(client.Run("c", {InstantOf(0)}).rows, "0|3\n");
  client.Simple(Pin(2));
  EXPECT_EQ(client.Run("c", {InstantOf(0)}).rows, "0|2\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(client.Run("c", {InstantOf(0)}).rows, "0|3\n");
}

TEST_F(Pins, StatementsPreparedInSqlObeyIt) {
  SqlClient client = Client();
  client.Simple("PREPARE s (int) AS SELECT n FROM t WHERE id = $1");
  client.Simple("PREPARE w AS INSERT INTO plain VALUES (1)");
  EXPECT_EQ(client.Simple("EXECUTE s (1)").rows, "3\n");
  for (const int n : {1, 2}) {
    client.Simple(Pin(n));
    for (int i = 0; i < 3; ++i) {
      const Answer answer = client.Simple("EXECUTE s (1)");
      EXPECT_EQ(answer.Outcome(), "ok") << answer.message;
      EXPECT_EQ(answer.rows, std::to_string(n) + "\n");
      EXPECT_EQ(answer.tag, "SELECT 1");
    }
  }
  EXPECT_EQ(client.Simple("EXECUTE w").state, "25006");
  client.Simple("PREPARE \"Later\" AS SELECT n FROM a_view WHERE id = 1");
  EXPECT_EQ(client.Simple("EXECUTE \"Later\"").rows, "2\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(client.Simple("EXECUTE s (1)").rows, "3\n");
  EXPECT_EQ(client.Simple("EXECUTE \"Later\"").rows, "3\n");
  EXPECT_EQ(client.Simple("EXECUTE missing").state, "26000");
}

TEST_F(Pins, CursorsKeepTheInstantTheyWereOpenedAt) {
  SqlClient client = Client();
  client.Simple("BEGIN");
  client.Simple(Pin(1));
  client.Simple("DECLARE c SCROLL CURSOR FOR SELECT n FROM t WHERE id = 1");
  client.Simple(Pin(2));
  EXPECT_EQ(client.Simple("FETCH c").rows, "1\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(client.Simple("FETCH BACKWARD ALL FROM c").rows, "");
  EXPECT_EQ(client.Simple("FETCH c").rows, "1\n");
  client.Simple("ROLLBACK");
}

TEST_F(Pins, MayBeSetWithinAStringOrAPipeline) {
  SqlClient client = Client();
  EXPECT_EQ(client.Simple(Pin(1) + "; SELECT n FROM t WHERE id = 1").rows, "1\n");
  EXPECT_EQ(client.Simple("RESET tidemark.as_of; SELECT n FROM t WHERE id = 1").rows, "3\n");
  EXPECT_EQ(client.Simple("BEGIN; SET LOCAL tidemark.as_of = " + At(2) +
                          "; SELECT n FROM a_view WHERE id = 1")
                .rows,
            "2\n");
  EXPECT_EQ(client.Simple("COMMIT; SELECT n FROM t WHERE id = 1").rows, "3\n");
  EXPECT_EQ(client.Simple(Pin(1) + "; INSERT INTO plain VALUES (1)").state, "25006");
  EXPECT_EQ(N(client), "3\n") << "the whole string was rolled back";
  const auto answers = client.Pipeline({{Pin(1), {}},
                                        {"SELECT n FROM t WHERE id = $1", {"1"}},
                                        {Pin(2), {}},
                                        {"SELECT n FROM t WHERE id = $1", {"1"}}});
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[1].rows, "1\n");
  EXPECT_EQ(answers[3].rows, "2\n");
}

TEST_F(Pins, APinnedSessionWritesNothing) {
  SqlClient client = Pinned(1);
  for (const char* sql : {"INSERT INTO plain VALUES (1)", "UPDATE plain SET id = 1",
                          "DELETE FROM plain", "TRUNCATE plain", "CREATE TABLE x (a int)",
                          "DROP TABLE plain", "SELECT * FROM t FOR UPDATE",
                          "WITH w AS (DELETE FROM plain RETURNING *) SELECT * FROM w",
                          "CREATE TABLE x AS SELECT * FROM t", "VACUUM plain"}) {
    const Answer answer = Both(client, sql);
    EXPECT_EQ(answer.state, "25006") << sql;
    EXPECT_THAT(answer.message, HasSubstr("pinned to the past")) << sql;
  }
  EXPECT_EQ(RowsOf(client, "SELECT count(*) FROM plain"), "0\n");
  EXPECT_EQ(client.Simple("CREATE TEMP TABLE mine AS SELECT n FROM t WHERE id = 1").Outcome(),
            "ok");
  EXPECT_EQ(RowsOf(client, "SELECT n FROM mine"), "1\n");
}

TEST_F(Pins, WhatCannotBePinnedIsRefusedNeverReadAtItsLatest) {
  auto& store = *mirror().store_;
  store.Execute(R"(
CREATE FUNCTION reads_t() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(n) FROM t';
CREATE MATERIALIZED VIEW kept AS SELECT * FROM t;
CREATE VIEW over_kept AS SELECT * FROM kept;
CREATE VIEW calling AS SELECT reads_t();
)");
  const int dataset = std::stoi(
      store.Value("SELECT id FROM tidemark.dataset WHERE relid = 'public.t'::regclass"));
  SqlClient client = Pinned(1);
  for (const std::string& sql :
       {std::string("SELECT reads_t()"), std::string("SELECT * FROM reads_t()"),
        std::string("SELECT * FROM kept"), std::string("SELECT * FROM over_kept"),
        std::string("SELECT * FROM calling"), std::string("DO $$ BEGIN END $$"),
        std::string("SELECT query_to_xml('SELECT 1', true, true, '')"),
        fmt::format("SELECT * FROM tidemark_current.d{}", dataset)}) {
    EXPECT_EQ(Both(client, sql).state, "0A000") << sql;
  }
  EXPECT_EQ(RowsOf(client, "SELECT lower('A'), count(*) FROM plain"), "a|0\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(RowsOf(client, "SELECT reads_t() > 0"), "t\n");
  store.Execute("DROP VIEW over_kept, calling; DROP MATERIALIZED VIEW kept; DROP FUNCTION reads_t");
}

TEST_F(Pins, ABadInstantIsAnErrorThatResetEnds) {
  SqlClient client = Client();
  client.Simple("SET tidemark.as_of = 'rubbish'");
  const Answer rubbish = Both(client, "SELECT n FROM t");
  EXPECT_EQ(rubbish.state, "22007");
  EXPECT_THAT(rubbish.message, HasSubstr("invalid value for parameter \"tidemark.as_of\""));
  client.Simple("SET tidemark.as_of = '2999-01-01'");
  EXPECT_EQ(Both(client, "SELECT n FROM t").state, "22008");
  client.Simple("SET tidemark.as_of = '1999-01-01'");
  const Answer before = Both(client, "SELECT n FROM t");
  EXPECT_EQ(before.state, "22008");
  EXPECT_THAT(before.message, HasSubstr("precedes the first captured state"));
  EXPECT_THAT(before.detail, HasSubstr("It has been captured since"));
  EXPECT_EQ(RowsOf(client, "SELECT 1"), "1\n");
  client.Simple("RESET tidemark.as_of");
  EXPECT_EQ(N(client), "3\n");
}

TEST_F(Pins, IsReadInTheSessionsTimeZone) {
  SqlClient client = Client();
  client.Simple("SET TimeZone = 'Asia/Kathmandu'");
  const std::string local = client.Simple("SELECT (" + At(1) + "::timestamptz)::timestamp").rows;
  client.Simple("SET tidemark.as_of = '" + local.substr(0, local.size() - 1) + "'");
  EXPECT_EQ(N(client), "1\n");
}

TEST_F(Pins, ErrorPositionsPointIntoTheClientsText) {
  SqlClient client = Pinned(1);
  const std::string sql = "SELECT 'é', t.n FROM t JOIN other.t o USING (id) WHERE misspelt = 1";
  const Answer answer = Both(client, sql);
  EXPECT_EQ(answer.state, "42703");
  EXPECT_EQ(answer.position, static_cast<int>(sql.find("misspelt")));  // é has two bytes
}

TEST_F(Pins, OtherDatabasesKnowNoPins) {
  SqlClient client(gateway().Dsn("postgres"));
  client.Simple("SET tidemark.as_of = 'rubbish'");
  EXPECT_EQ(RowsOf(client, "SELECT count(*) > 0 FROM pg_class"), "t\n");
  EXPECT_EQ(client.Simple("CREATE TEMP TABLE x (a int)").Outcome(), "ok");
}

}  // namespace
}  // namespace tidemark::tests
