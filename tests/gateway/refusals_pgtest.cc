// What is not allowed and what it answers, through a real gateway: SQLSTATE, message, position in
// the client's own text, and the transaction afterwards. The temporal SQL surface, section 3.
#include <fmt/format.h>

#include "tests/gateway/raw_client.h"
#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class TimeTravelRefusals : public TimeTravelFixture {
 protected:
  struct Case {
    std::string sql, outcome, at;  // `at`: the text that the error points at
  };
  static int PositionIn(const std::string& sql, const std::string& at) {
    const size_t byte = sql.find(at);
    EXPECT_NE(byte, std::string::npos) << at;
    int characters = 1;
    for (size_t i = 0; i < byte; ++i) characters += (sql[i] & 0xc0) != 0x80 ? 1 : 0;
    return characters;
  }
  static std::vector<Case> Cases();
};

// Instants of literals that the functions refuse while the statement runs have the position of the
// instant, as far as one clause only can be meant.
std::vector<TimeTravelRefusals::Case> TimeTravelRefusals::Cases() {
  const std::string e = "SELECT 'é€', ";
  const std::string t = e + "n FROM t FOR SYSTEM_TIME AS OF ";
  const std::string wrong =
      "42804 FOR SYSTEM_TIME instant must be of type timestamp with time zone, not ";
  const std::string lead =
      "22008 instant 2001-01-01 00:00:00+00 precedes the first captured state "
      "of \"t\"";
  return {
      {e + "* FROM plain FOR SYSTEM_TIME AS OF now()",
       "42809 relation \"plain\" is not system-versioned", "plain"},
      {e + "* FROM plain x FOR SYSTEM_TIME ALL", "42809 relation \"plain\" is not system-versioned",
       "plain"},
      {e + "* FROM pg_class FOR SYSTEM_TIME ALL",
       "42809 relation \"pg_class\" is not system-versioned", "pg_class"},
      {e + "* FROM nope FOR SYSTEM_TIME ALL", "42P01 relation \"nope\" does not exist", "nope"},
      {e + "* FROM no.pe FOR SYSTEM_TIME ALL", "42P01 relation \"no.pe\" does not exist", "no.pe"},
      {"WITH c AS (SELECT 'é') SELECT * FROM c FOR SYSTEM_TIME ALL",
       "0A000 FOR SYSTEM_TIME is not allowed on CTE \"c\"", "c FOR"},
      {e + "* FROM (SELECT 1) s FOR SOURCE_TIME ALL",
       "0A000 FOR SOURCE_TIME is not allowed on a sub-select", "(SELECT"},
      {e + "* FROM now() FOR SYSTEM_TIME ALL",
       "0A000 FOR SYSTEM_TIME is not allowed on function \"now\"", "now()"},
      {t + "'2001-01-01 00:00+00'", lead, "'2001"},
      {t + "timestamptz '2001-01-01 00:00+00' - interval '0'", lead, "timestamptz '2001"},
      {e + "n FROM t FOR SOURCE_TIME AS OF '2001-01-01 00:00+00'", lead, "'2001"},
      {e + "n FROM t FOR SOURCE_POSITION AS OF '0/1'",
       "22008 position 0/1 precedes the first captured state of \"t\"", "'0/1'"},
      {t + "'2999-01-01 00:00+00'", "22008 instant 2999-01-01 00:00:00+00 is in the future",
       "'2999"},
      {t + "'infinity'", "22008 instant infinity is in the future", "'infinity'"},
      {e + "n FROM t FOR SOURCE_POSITION AS OF 'FFFF/0'",
       "55000 \"t\" has been received only up to", "'FFFF/0'"},
      {e + "n FROM t FOR SOURCE_TIME AS OF '2999-01-01'",
       "55000 \"t\" has been received only up to", "'2999"},
      {t + "clock_timestamp()", "42P17 FOR SYSTEM_TIME instant must not contain volatile functions",
       "clock_"},
      {t + "now() - random() * interval '1 s'",
       "42P17 FOR SYSTEM_TIME instant must not contain volatile functions", "random"},
      {t + "NULL", "22004 FOR SYSTEM_TIME instant must not be null", "NULL"},
      {t + "now() + NULL::interval", "22004 FOR SYSTEM_TIME instant must not be null", "now()"},
      {e + "n FROM t FOR SYSTEM_TIME FROM NULL::timestamptz TO now()",
       "22004 FOR SYSTEM_TIME instant must not be null", "NULL"},
      {e + "n FROM t FOR SYSTEM_TIME FROM nullif(now(), now()) TO now()",
       "22004 FOR SYSTEM_TIME instant must not be null", ""},
      {t + "'yesteryear'",
       "22007 invalid input syntax for type timestamp with time zone: \"yesteryear\"",
       "'yesteryear'"},
      {t + "now() - 'x'", "22007 invalid input syntax for type timestamp with time zone: \"x\"",
       "'x'"},
      {t + "'2026-02-30'", "22008 date/time field value out of range: \"2026-02-30\"", "'2026-02"},
      {t + "7", wrong + "integer", "7"},
      {t + "now()::text", wrong + "text", "now()"},
      {t + "true", wrong + "boolean", "true"},
      {t + "interval '1 day'", wrong + "interval", "interval"},
      {e + "n FROM t FOR SOURCE_POSITION AS OF now()",
       "42804 FOR SOURCE_POSITION position must be of type pg_lsn, not timestamp with time zone",
       "now()"},
      {t + "now() o FOR UPDATE", "0A000 FOR UPDATE is not allowed with FOR SYSTEM_TIME",
       "FOR UPDATE"},
      {t + "now() o FOR KEY SHARE OF o", "0A000 FOR KEY SHARE is not allowed with FOR SYSTEM_TIME",
       "FOR KEY"},
      {t + "now() FOR SYSTEM_TIME ALL",
       "42601 only one temporal clause is allowed on a table reference", "FOR SYSTEM_TIME ALL"},
      {e + "n FROM t FOR SYSTEM_TIME", "42601 syntax error at end of input", ""},
      {t + "now() - interval '1 s' o", "42601 syntax error at or near \"o\"", "o"},
      {t + "(SELECT now())", "0A000 sub-queries are not allowed in a FOR SYSTEM_TIME instant",
       "(SELECT"},
      {t + "now() WHERE nope", "42703 column \"nope\" does not exist", "nope"},
      {t + "nope()", "42883 function nope() does not exist", "nope"},
      {"UPDATE t FOR SYSTEM_TIME AS OF now() SET n = 1",
       "42601 FOR SYSTEM_TIME is not allowed on the target of UPDATE", "t FOR"},
      {"DELETE FROM t FOR SYSTEM_TIME ALL",
       "42601 FOR SYSTEM_TIME is not allowed on the target of DELETE", "t FOR"},
      {e + "n FROM t FOR SYSTEM_TIME AS OF now() TABLESAMPLE system (10)",
       "0A000 TABLESAMPLE is not allowed with FOR SYSTEM_TIME", "TABLESAMPLE"},
  };
}

TEST_F(TimeTravelRefusals, EachMistakeHasItsAnswerInBothProtocols) {
  auto client = Client();
  client.Simple("SET timezone = 'UTC'; SET datestyle = 'ISO'");
  for (const auto& [sql, outcome, at] : Cases()) {
    for (const bool simple : {true, false}) {
      const Answer answer = simple ? client.Simple(sql) : client.Extended(sql);
      EXPECT_THAT(answer.state + " " + answer.message, ::testing::StartsWith(outcome))
          << sql << (simple ? " simple" : " extended");
      EXPECT_EQ(answer.transaction, 'I') << sql;
      if (at.empty()) continue;
      const size_t skip = at == "o" ? sql.size() - 1 : 0;
      const int want = skip > 0 ? PositionIn(sql, "' o") + 2 : PositionIn(sql, at);
      EXPECT_EQ(answer.position, want) << sql << (simple ? " simple" : " extended");
    }
  }
  EXPECT_EQ(RowsOf(client, "SELECT 1"), "1\n");
}

TEST_F(TimeTravelRefusals, DetailsAndHintsHelp) {
  auto client = Client();
  EXPECT_THAT(Both(client, "SELECT * FROM t FOR SYSTEM_TIME AS OF '2001-01-01'").detail,
              HasSubstr("It has been captured since "));
  EXPECT_THAT(client.Simple("SELECT * FROM t FOR SOURCE_POSITION AS OF 'FFFF/0'").hint,
              HasSubstr("tidemark wait"));
  EXPECT_THAT(client.Simple("SELECT * FROM t FOR SOURCE_TIME AS OF 'infinity'").hint,
              HasSubstr("Wait until"));
}

TEST_F(TimeTravelRefusals, AParameterOfTheWrongKindIsRefused) {
  auto client = Client();
  const std::string sql = "SELECT n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = 1";
  EXPECT_EQ(client.Extended(sql, {std::nullopt}).Outcome(),
            "22004 39 FOR SYSTEM_TIME instant must not be null");
  EXPECT_EQ(client.Extended(sql, {"2001-01-01 00:00+00"}).state, "22008");
  EXPECT_EQ(client.Extended(sql, {"2999-01-01 00:00+00"}).state, "22008");
  EXPECT_EQ(client.Extended(sql, {"no"}).state, "22007");
  EXPECT_EQ(client.ExtendedBinary(sql, 23, std::string("\0\0\0\1", 4)).Outcome(),
            "42804 39 FOR SYSTEM_TIME instant must be of type timestamp with time zone, not "
            "integer");
}

TEST_F(TimeTravelRefusals, AnErrorFailsTheTransactionAndOnlyRollbackEndsIt) {
  auto client = Client();
  for (const auto& [sql, outcome, at] : Cases()) {
    for (const bool simple : {true, false}) {
      client.Simple("BEGIN");
      EXPECT_EQ((simple ? client.Simple(sql) : client.Extended(sql)).transaction, 'E') << sql;
      EXPECT_EQ(client.Simple("SELECT 1").state, "25P02");
      EXPECT_EQ(client.Simple("SELECT n FROM t FOR SYSTEM_TIME AS OF now()").state, "25P02");
      EXPECT_EQ(client.Extended("SELECT n FROM t FOR SYSTEM_TIME AS OF now()").state, "25P02");
      EXPECT_EQ(client.Extended("EXECUTE x").state, "25P02");
      EXPECT_EQ(client.Simple("COPY t TO STDOUT").state, "25P02");
      EXPECT_EQ(client.Simple("COMMIT").tag, "ROLLBACK");
    }
  }
  client.Simple("BEGIN; SAVEPOINT s");
  EXPECT_EQ(client.Simple("SELECT n FROM t FOR SYSTEM_TIME AS OF 7").state, "42804");
  EXPECT_EQ(client.Simple("ROLLBACK TO s").transaction, 'T');
  EXPECT_EQ(client.Simple("SELECT n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1").rows, "3\n");
  client.Simple("COMMIT");
}

// A store that knew the clauses would answer as one that is asked for its own functions does.
TEST_F(TimeTravelRefusals, APipelineWithAnErrorRecoversAtSyncAsPlainPostgresqlDoes) {
  const auto conversation = [](const std::string& good, const std::string& bad) {
    std::string bytes;
    const auto run = [&](std::string_view name, std::string_view text) {
      wire::Parse{name, text, {}}.Write(bytes);
      wire::Bind{"", name, {}}.Write(bytes);
      wire::Naming{'P', ""}.WriteDescribe(bytes);
      wire::Execute{"", 0}.Write(bytes);
    };
    for (const std::string_view begin : {"SELECT 1", "BEGIN"}) {
      run("", begin);
      run("a", good);
      run("b", bad);
      run("c", good);
      wire::Naming{'S', "a"}.WriteClose(bytes);
      run("", "SELECT 'skipped'");
      wire::WriteMessage(bytes, wire::kSync);
      run("", good);
      wire::WriteMessage(bytes, wire::kSync);
      wire::Query{"ROLLBACK"}.Write(bytes);
      run("d", good);
      wire::Bind{"", "a", {}}.Write(bytes);
      wire::Execute{"", 0}.Write(bytes);
      wire::Bind{"", "c", {}}.Write(bytes);
      wire::WriteMessage(bytes, wire::kSync);
      wire::Naming{'S', "a"}.WriteClose(bytes);
      wire::Naming{'S', "d"}.WriteClose(bytes);
      wire::WriteMessage(bytes, wire::kSync);
    }
    return bytes;
  };
  const std::string good = "SELECT n + 0 AS n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1";
  const std::string plain = "SELECT n + 0 AS n FROM t WHERE id = 1";
  for (const std::string bad : {"SELECT 1/0", "SELECT nope", "gibberish"}) {
    gateway::RawClient through(gateway().port()), direct(Cluster::Shared());
    through.Start(mirror().database());
    through.Send(conversation(good, bad));
    through.FinishSending();
    direct.Start(mirror().database());
    direct.Send(conversation(plain, bad));
    direct.FinishSending();
    EXPECT_EQ(through.ReadToEnd(), direct.ReadToEnd()) << bad;
  }
}

TEST_F(TimeTravelRefusals, APipelineGivesEachStatementItsAnswer) {
  auto client = Client();
  const std::string as_of = "SELECT n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = 1";
  auto answers = client.Pipeline({{as_of, {InstantOf(1)}},
                                  {"SELECT 'x'", {}},
                                  {as_of, {InstantOf(2)}},
                                  {"SELECT n FROM t FOR SYSTEM_TIME AS OF 7", {}},
                                  {as_of, {InstantOf(3)}},
                                  {"SELECT 'y'", {}}});
  EXPECT_EQ(answers[0].rows, "1\n") << answers[0].Outcome();
  EXPECT_EQ(answers[1].rows, "x\n");
  EXPECT_EQ(answers[2].rows, "2\n");
  EXPECT_EQ(answers[3].Outcome(),
            "42804 39 FOR SYSTEM_TIME instant must be of type timestamp with time zone, not "
            "integer");
  EXPECT_EQ(answers[4].state, "aborted");
  EXPECT_EQ(answers[5].state, "aborted");
  answers = client.Pipeline({{as_of, {InstantOf(0)}}, {"SELECT n FROM t WHERE id = 1", {}}});
  EXPECT_EQ(answers[0].rows, "0\n");
  EXPECT_EQ(answers[1].rows, "3\n");
}

TEST_F(TimeTravelRefusals, WritesOfAReaderAreRefused) {
  auto client = Client("gateway_reader");
  for (const std::string sql :
       {"INSERT INTO t VALUES (9, 9)", "UPDATE t SET n = 1", "DELETE FROM t", "TRUNCATE t",
        "CREATE TABLE x (a int)", "DROP TABLE t", "ALTER TABLE t ADD x int",
        "CREATE TEMP TABLE x AS SELECT * FROM t FOR SYSTEM_TIME AS OF now()",
        "INSERT INTO t SELECT * FROM t FOR SYSTEM_TIME AS OF now()",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d, t FOR SYSTEM_TIME AS OF now() x"}) {
    for (const bool simple : {true, false}) {
      const auto answer = simple ? client.Simple(sql) : client.Extended(sql);
      EXPECT_EQ(answer.state, "25006") << sql;
    }
  }
  EXPECT_THAT(client.Simple("COPY t FROM STDIN").state, ::testing::AnyOf("25006", "42501"));
  EXPECT_EQ(client.Simple("COPY t TO STDOUT").tag, "COPY 2");
  EXPECT_EQ(RowsOf(client, "SELECT n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1"), "3\n");
  EXPECT_EQ(RowsOf(client, "SELECT count(*) FROM t FOR SYSTEM_TIME ALL"), "5\n");
  for (const char* sql : {"BEGIN READ WRITE", "SET default_transaction_read_only = off",
                          "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"}) {
    EXPECT_EQ(Both(client, sql).state, "25006") << sql;
  }
  // What cannot be seen through ends at the role's privileges.
  EXPECT_EQ(client.Extended("SELECT set_config($1, $2, false)",
                            {"default_transaction_read_only", "off"})
                .Outcome(),
            "ok");
  EXPECT_EQ(client.Simple("DELETE FROM t").state, "42501");
}

TEST_F(TimeTravelRefusals, WhatIsPrunedOrDroppedIsSaid) {
  auto& store = *mirror().store_;
  const auto set = [&](const std::string& columns) {
    store.Execute("UPDATE tidemark.dataset SET " + columns +
                  " WHERE relid = 'other.t'::regclass::oid");
  };
  auto client = Client();
  const std::string sql = "SELECT n FROM other.t FOR SYSTEM_TIME AS OF ";
  set("tx_retained = (SELECT tx_last FROM tidemark.resume)");
  const auto pruned = Both(client, sql + At(0));
  EXPECT_EQ(pruned.state, "72000");
  EXPECT_EQ(pruned.message.rfind("snapshot too old: instant ", 0), 0u) << pruned.message;
  EXPECT_THAT(pruned.message, testing::EndsWith("is older than the retained history of \"t\""));
  const std::string newest = "'" + mirror().Newest() + "'";
  EXPECT_EQ(Both(client, sql + newest).rows, "100\n");
  set("tx_retained = 0, tx_dropped = (SELECT tx_last FROM tidemark.resume)");
  EXPECT_EQ(Both(client, sql + At(0)).rows, "100\n");
  const auto dropped = Both(client, sql + newest);
  EXPECT_EQ(dropped.state, "42P01");
  EXPECT_EQ(dropped.message.rfind("relation \"t\" did not exist at instant ", 0), 0u)
      << dropped.message;
  set("tx_dropped = NULL");
}

TEST_F(TimeTravelRefusals, AForeignDatabaseOfTheClusterPassesUntouched) {
  SqlClient through(gateway().Dsn("postgres")), direct(Cluster::Shared().Dsn("postgres"));
  for (const std::string sql :
       {"SELECT 'é' FROM pg_class FOR SYSTEM_TIME AS OF now()", "SELECT * FROM x FOR SYSTEM_TIME",
        "COPY pg_class (oid) TO STDOUT", "PREPARE p AS SELECT 1; EXECUTE p"}) {
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(through.Simple(sql).Outcome(), direct.Simple(sql).Outcome()) << sql;
      EXPECT_EQ(through.Extended(sql).Outcome(), direct.Extended(sql).Outcome()) << sql;
    }
  }
  EXPECT_EQ(through.Simple("SELECT 1 FROM pg_class FOR SYSTEM_TIME AS OF now()").Outcome(),
            "42601 28 syntax error at or near \"SYSTEM_TIME\"");
}

}  // namespace
}  // namespace tidemark::tests
