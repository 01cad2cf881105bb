// Every form of the temporal clauses, in every place where a table reference stands, through a real
// gateway before the store of a real mirror. Specification: the temporal SQL surface, section 1.
#include <fmt/format.h>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TimeTravelForms : public TimeTravelFixture {
 protected:
  SqlClient client_ = Client();
  std::string N(const std::string& period, const std::string& more = {}) {
    return RowsOf(client_, "SELECT n FROM t " + period + " WHERE id = 1 " + more);
  }
};

TEST_F(TimeTravelForms, AsOfIsHalfOpenAtEachBasis) {
  for (int n = 0; n < 4; ++n) {
    const auto want = std::to_string(n) + "\n";
    EXPECT_EQ(N("FOR SYSTEM_TIME AS OF " + At(n)), want);
    EXPECT_EQ(N("FOR SYSTEM_TIME AS OF " + At(n, 1)), want);
    if (n > 0) {
      EXPECT_EQ(N("FOR SYSTEM_TIME AS OF " + At(n, -1)), std::to_string(n - 1) + "\n");
    }
    EXPECT_EQ(N("FOR SOURCE_POSITION AS OF " + Position(n)), want);
    EXPECT_EQ(N("FOR SOURCE_TIME AS OF " + SourceAt(n)), want);
    EXPECT_EQ(
        client_.Extended("SELECT n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = 1", {InstantOf(n)})
            .rows,
        want);
  }
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF now()"), "3\n");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF 'now'"), "3\n");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF statement_timestamp()"), "3\n");
}

TEST_F(TimeTravelForms, RangesFollowTheirDefinition) {
  const auto ns = [&](const std::string& period) { return N(period, "ORDER BY n"); };
  const std::string a = At(1), b = At(3);
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM " + a + " TO " + b), "1\n2\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM " + At(1, 1) + " TO " + At(3, 1)), "1\n2\n3\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM " + At(1, -1) + " TO " + b), "0\n1\n2\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM " + a + " TO " + a), "");
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM " + b + " TO " + a), "");
  EXPECT_EQ(ns("FOR SYSTEM_TIME BETWEEN " + a + " AND " + b), "1\n2\n3\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME BETWEEN ASYMMETRIC " + a + " AND " + At(3, -1)), "1\n2\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME BETWEEN " + b + " AND " + a), "");
  EXPECT_EQ(ns("FOR SYSTEM_TIME BETWEEN SYMMETRIC " + b + " AND " + a), "1\n2\n3\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME BETWEEN " + a + " AND " + a), "1\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME CONTAINED IN (" + a + ", " + b + ")"), "1\n2\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME CONTAINED IN (" + At(1, 1) + ", " + b + ")"), "2\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME CONTAINED IN (" + a + ", " + At(3, -1) + ")"), "1\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME CONTAINED IN (" + a + ", 'infinity')"), "1\n2\n3\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME ALL"), "0\n1\n2\n3\n");
  EXPECT_EQ(ns("FOR ALL SYSTEM_TIME"), "0\n1\n2\n3\n");
  EXPECT_EQ(ns("FOR SOURCE_TIME ALL"), "0\n1\n2\n3\n");
  EXPECT_EQ(ns("FOR SOURCE_TIME FROM " + SourceAt(1) + " TO " + SourceAt(3)), "1\n2\n");
  EXPECT_EQ(ns("FOR SOURCE_TIME BETWEEN " + SourceAt(1) + " AND " + SourceAt(3)), "1\n2\n3\n");
  EXPECT_EQ(ns("FOR SYSTEM_TIME FROM '-infinity' TO 'infinity'"), "0\n1\n2\n3\n");
  EXPECT_EQ(client_
                .Extended("SELECT n FROM t FOR SYSTEM_TIME FROM $1 TO $2 WHERE id = 1 ORDER BY n",
                          {InstantOf(1), InstantOf(3)})
                .rows,
            "1\n2\n");
}

TEST_F(TimeTravelForms, RangesReturnThePeriodColumns) {
  const Answer all = Both(client_, "SELECT * FROM t FOR SYSTEM_TIME ALL ORDER BY id, tx_from");
  EXPECT_EQ(all.columns, "id,n,note,system_from,system_to,source_from,source_to,tx_from,tx_to");
  EXPECT_EQ(all.rows, RowsOf(client_, "SELECT * FROM public_history.t ORDER BY id, tx_from"));
  EXPECT_EQ(RowsOf(client_, "SELECT system_to, source_to, tx_to FROM t FOR SYSTEM_TIME BETWEEN " +
                                At(3) + " AND " + At(3) + " WHERE id = 1"),
            "infinity|infinity|NULL\n");
  EXPECT_EQ(RowsOf(client_, "SELECT system_from = " + At(1) + "::timestamptz, system_to = " +
                                At(2) + "::timestamptz FROM t FOR SYSTEM_TIME CONTAINED IN (" +
                                At(1) + ", " + At(2) + ")"),
            "t|t\n");
  EXPECT_EQ(Both(client_, "SELECT * FROM periods FOR SYSTEM_TIME ALL").columns,
            "id,system_from,tx_to,_system_from,system_to,source_from,source_to,tx_from,_tx_to");
  EXPECT_EQ(Both(client_, "SELECT * FROM periods FOR SYSTEM_TIME AS OF now()").rows, "1|2|x\n");
}

TEST_F(TimeTravelForms, ClausesStandBeforeOrAfterTheAlias) {
  const std::string as_of = " FOR SYSTEM_TIME AS OF " + At(1);
  for (const std::string& from :
       {"t" + as_of, "ONLY t" + as_of + " AS o", "ONLY (t)" + as_of + " o", "t o" + as_of,
        "t AS o" + as_of, "t *" + as_of + " o", "public.t" + as_of + " AS o (id, n)",
        "t o (id, n)" + as_of, "t FOR SYSTEM_TIME AS OF (" + At(1) + "::timestamptz) o",
        "t FOR SYSTEM_TIME AS OF timestamptz " + At(1) + " o",
        "t FOR SYSTEM_TIME AS OF CAST(" + At(1) + " AS timestamptz) o",
        "t FOR SYSTEM_TIME AS OF " + At(2) + "::timestamptz - interval '1 microsecond' AS o",
        "t FOR SYSTEM_TIME AS OF " + At(1) + "::text::timestamptz o"}) {
    EXPECT_EQ(RowsOf(client_, "SELECT n FROM " + from + " WHERE id = 1"), "1\n") << from;
  }
  EXPECT_EQ(RowsOf(client_, "SELECT public.t.n FROM public.t" + as_of + " WHERE public.t.id = 1"),
            "1\n");
  EXPECT_EQ(RowsOf(client_, "TABLE t" + as_of + " ORDER BY 1 LIMIT 1"), "1|1|a\n");
}

TEST_F(TimeTravelForms, ClausesStandWhereverATableStands) {
  const std::string one = "FOR SYSTEM_TIME AS OF " + At(1), two = "FOR SYSTEM_TIME AS OF " + At(2);
  EXPECT_EQ(RowsOf(client_, "SELECT a.n, b.n, t.n FROM t " + one + " a JOIN t " + two +
                                " b USING (id) NATURAL JOIN (SELECT id FROM t) x, t WHERE a.id = 1 "
                                "AND t.id = a.id"),
            "1|2|3\n");
  EXPECT_EQ(RowsOf(client_, "SELECT (SELECT n FROM t " + one +
                                " WHERE id = 1), (SELECT max(n) FROM "
                                "(SELECT * FROM t " +
                                two + " o WHERE id = 1) x)"),
            "1|2\n");
  EXPECT_EQ(RowsOf(client_, "WITH a AS (SELECT n FROM t " + one +
                                " WHERE id = 1), b AS MATERIALIZED "
                                "(SELECT n FROM t " +
                                two +
                                " WHERE id = 1) TABLE a UNION ALL TABLE "
                                "b UNION ALL SELECT n FROM t FOR SYSTEM_TIME AS OF " +
                                At(0) + " WHERE id = 1"),
            "1\n2\n0\n");
  EXPECT_EQ(
      RowsOf(client_, "SELECT n FROM t " + two + " WHERE id = 1 EXCEPT SELECT n FROM t " + one),
      "2\n");
  for (const char* setting : {"RESET enable_seqscan", "SET enable_seqscan = off",
                              "SET enable_indexscan = off", "RESET ALL"}) {
    client_.Simple(setting);
    EXPECT_EQ(RowsOf(client_,
                     "SELECT i.id, o.n FROM (SELECT * FROM instants ORDER BY id DESC OFFSET "
                     "0) i LEFT JOIN t FOR SYSTEM_TIME AS OF i.at o ON o.id = 1 ORDER BY i.id"),
              "0|0\n1|1\n2|2\n3|3\n");
  }
  EXPECT_EQ(RowsOf(client_,
                   "SELECT i.id, x.n FROM instants i, LATERAL (SELECT n FROM t FOR "
                   "SYSTEM_TIME AS OF i.at WHERE id = 1) x ORDER BY 1"),
            "0|0\n1|1\n2|2\n3|3\n");
  EXPECT_EQ(RowsOf(client_,
                   "SELECT i.id, x.n FROM instants i JOIN LATERAL (SELECT * FROM t FOR "
                   "SYSTEM_TIME AS OF i.at + interval '1 microsecond') x ON x.id = 1 "
                   "ORDER BY 1"),
            "0|0\n1|1\n2|2\n3|3\n");
}

TEST_F(TimeTravelForms, CursorsExplainAndCopyTakeClauses) {
  const std::string select = "SELECT n FROM t FOR SYSTEM_TIME AS OF " + At(1) + " WHERE id = 1";
  const std::string now = "SELECT n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1";
  client_.Simple("BEGIN");
  EXPECT_EQ(client_.Simple("DECLARE a CURSOR FOR " + select).Outcome(), "ok");
  EXPECT_EQ(client_.Extended("DECLARE b SCROLL CURSOR WITH HOLD FOR " + now).Outcome(), "ok");
  EXPECT_EQ(client_.Simple("FETCH a").rows, "1\n");
  EXPECT_EQ(client_.Extended("FETCH ALL FROM a").rows, "");
  client_.Simple("COMMIT");
  EXPECT_EQ(client_.Simple("FETCH b").rows, "3\n");
  EXPECT_THAT(RowsOf(client_, "EXPLAIN (COSTS off) " + select), HasSubstr("_from <= '"));
  for (const auto& query : {select, now}) {
    EXPECT_THAT(client_.Simple("EXPLAIN ANALYZE " + query).rows, HasSubstr("actual time"));
    EXPECT_THAT(client_.Extended("EXPLAIN (ANALYZE, FORMAT json) " + query).rows,
                HasSubstr("Actual Rows"));
    const std::string want = query == now ? "3\n" : "1\n";
    EXPECT_EQ(client_.Simple("COPY (" + query + ") TO STDOUT").rows, want);
    EXPECT_EQ(client_.Extended("COPY (" + query + ") TO STDOUT (FORMAT csv)").rows, want);
    EXPECT_EQ(client_.Simple("CREATE TEMP TABLE kept AS " + query).tag, "SELECT 1");
    EXPECT_EQ(client_.Simple("TABLE kept; DROP TABLE kept").Outcome(), "ok");
    EXPECT_EQ(client_.Extended("CREATE TEMP TABLE kept AS " + query).tag, "SELECT 1");
    EXPECT_EQ(client_.Extended("SELECT * FROM kept").rows, want);
    client_.Simple("DROP TABLE kept");
    EXPECT_EQ(client_.Simple("SELECT * INTO TEMP kept FROM (" + query + ") x").tag, "SELECT 1");
    EXPECT_EQ(client_.Simple("INSERT INTO kept " + query + " RETURNING *").rows, want);
    client_.Simple("DROP TABLE kept");
  }
}

TEST_F(TimeTravelForms, StatementsPreparedInSqlTakeClauses) {
  EXPECT_EQ(client_
                .Simple("PREPARE p (timestamptz) AS SELECT n FROM t FOR SYSTEM_TIME AS OF $1 "
                        "WHERE id = 1")
                .Outcome(),
            "ok");
  EXPECT_EQ(client_.Simple("PREPARE q AS SELECT n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1")
                .Outcome(),
            "ok");
  for (int i = 0; i < 7; ++i) {
    const int n = i % 4;
    const std::string execute = "EXECUTE p (" + At(n) + ")", want = std::to_string(n) + "\n";
    EXPECT_EQ(client_.Simple(execute).rows, want);
    EXPECT_EQ(client_.Extended(execute).rows, want);
    EXPECT_EQ(client_.Simple("EXECUTE q").rows, "3\n");
    EXPECT_EQ(client_.Extended("execute q").rows, "3\n");
    EXPECT_EQ(client_.Simple("/* again */ SELECT 1; EXECUTE q").rows, "3\n");
    EXPECT_THAT(client_.Simple("EXPLAIN EXECUTE q").rows, HasSubstr("Append"));
    EXPECT_EQ(client_.Run("q").rows, "3\n") << "a name of SQL's in the extended protocol";
    EXPECT_EQ(client_.Simple("CREATE TEMP TABLE kept AS EXECUTE q; TABLE kept").rows, "3\n");
    EXPECT_EQ(client_.Simple("DROP TABLE kept").Outcome(), "ok");
  }
  EXPECT_EQ(client_.Simple("EXECUTE nope").Outcome(),
            "26000 0 prepared statement \"nope\" does not exist");
  EXPECT_EQ(client_.Simple("SELECT 'é'; EXECUTE p (nope)").Outcome(),
            "42703 24 column \"nope\" does not exist");
}

TEST_F(TimeTravelForms, StringsOfSeveralStatementsGiveEachItsResult) {
  const std::string select = "SELECT n FROM t FOR SYSTEM_TIME AS OF ";
  EXPECT_EQ(PQsendQuery(client_.get(),
                        (select + At(1) + " WHERE id = 1; SELECT 'x';; " + select +
                         "now() WHERE id = 1; SELECT 'y'; " + select + At(2) + " WHERE id = 1")
                            .c_str()),
            1);
  std::vector<std::string> values;
  while (PGresult* result = PQgetResult(client_.get())) {
    EXPECT_EQ(PQresultStatus(result), PGRES_TUPLES_OK) << PQerrorMessage(client_.get());
    values.emplace_back(PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "?");
    PQclear(result);
  }
  EXPECT_THAT(values, ElementsAre("1", "x", "3", "y", "2"));
  EXPECT_EQ(
      client_.Simple("BEGIN ISOLATION LEVEL REPEATABLE READ; " + select + "now() WHERE id = 1")
          .rows,
      "3\n");
  EXPECT_EQ(client_.Simple("COMMIT").tag, "COMMIT");
  const Answer failed =
      client_.Simple("SELECT 'é'; " + select + "now() WHERE id = 1; SELECT 'é', nope");
  EXPECT_EQ(failed.state, "42703");
  EXPECT_EQ(failed.position, 83);
  EXPECT_EQ(failed.transaction, 'I');
}

TEST_F(TimeTravelForms, ParametersAreTimestamptzInTextAndBinary) {
  EXPECT_EQ(
      client_.Prepare("s", "SELECT id, n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = $2").Outcome(),
      "ok");
  EXPECT_THAT(client_.ParametersOf("s"), ElementsAre(1184, 23));
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(client_.Run("s", {InstantOf(i % 4), "1"}).rows, fmt::format("1|{}\n", i % 4));
  }
  EXPECT_EQ(client_.Run("s", {InstantOf(2), "1"}, true).rows, "00000001|00000002\n");
  EXPECT_EQ(client_.Run("s", {std::nullopt, "1"}).Outcome(),
            "22004 43 FOR SYSTEM_TIME instant must not be null");
  const auto microseconds = std::stoll(mirror().store_->Value(
      "SELECT (extract(epoch FROM $1::timestamptz - '2000-01-01 00:00+00') * 1000000)::bigint",
      {InstantOf(1)}));
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(microseconds >> shift);
  EXPECT_EQ(
      client_.ExtendedBinary("SELECT n FROM t FOR SYSTEM_TIME AS OF $1 WHERE id = 1", 1184, bytes)
          .rows,
      "00000001\n");
  EXPECT_EQ(
      client_
          .Extended("SELECT n FROM t FOR SYSTEM_TIME AS OF $1::text::timestamptz WHERE id = 1",
                    {InstantOf(2)})
          .rows,
      "2\n");
  EXPECT_EQ(client_
                .Extended("SELECT n FROM t FOR SYSTEM_TIME AS OF $1::timestamptz - $2::interval "
                          "WHERE id = 1",
                          {InstantOf(2), "1 microsecond"})
                .rows,
            "1\n");
  EXPECT_EQ(
      client_
          .Extended("SELECT a.n, b.n FROM t FOR SYSTEM_TIME AS OF $1 a JOIN t FOR SYSTEM_TIME "
                    "AS OF $2 b USING (id) WHERE id = 1",
                    {InstantOf(0), InstantOf(2)})
          .rows,
      "0|2\n");
}

TEST_F(TimeTravelForms, InstantsAreReadInTheSessionsTimeZone) {
  const std::string local = mirror().store_->Value(
      "SELECT ($1::timestamptz AT TIME ZONE 'Asia/Kathmandu')::text", {InstantOf(1)});
  client_.Simple("SET timezone = 'Asia/Kathmandu'");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF '" + local + "'"), "1\n");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF timestamp '" + local + "'"), "1\n");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF '" + local + "+05:45'"), "1\n");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF '" + local + "'::timestamp AT TIME ZONE 'Asia/Kathmandu'"),
            "1\n");
  client_.Simple("RESET timezone");
}

TEST_F(TimeTravelForms, NamesMeanWhatTheyMeanInTheSession) {
  const std::string as_of = " FOR SYSTEM_TIME AS OF now()";
  EXPECT_EQ(RowsOf(client_, "SELECT * FROM \"Größe, \"\"S\"\"\".\"Täble, \"\"1\"\" €\"" + as_of),
            "1|5\n");
  EXPECT_EQ(RowsOf(client_,
                   "SELECT \"Wert, €\" FROM \"Größe, \"\"S\"\"\".\"Täble, \"\"1\"\" €\" FOR "
                   "ALL SYSTEM_TIME x"),
            "5\n");
  EXPECT_EQ(RowsOf(client_,
                   "SELECT id FROM AAAAAAAAAAbbbbbbbbbbccccccccccddddddddddeeeeeeeeeefff"
                   "fffffff123" +
                       as_of),
            "63\n");
  EXPECT_EQ(RowsOf(client_, "SELECT n FROM OTHER.\"t\"" + as_of), "100\n");
  client_.Simple("SET search_path = other, public");
  EXPECT_EQ(RowsOf(client_, "SELECT n FROM t" + as_of), "100\n");
  client_.Simple("SET search_path = \"Größe, \"\"S\"\"\"");
  EXPECT_EQ(RowsOf(client_, "SELECT id FROM \"Täble, \"\"1\"\" €\"" + as_of), "1\n");
  EXPECT_EQ(Both(client_, "SELECT id FROM t" + as_of).Outcome(),
            "42P01 16 relation \"t\" does not exist");
  client_.Simple("RESET search_path; CREATE TEMP TABLE t (id int)");
  EXPECT_EQ(Both(client_, "SELECT id FROM t" + as_of).Outcome(),
            "42809 16 relation \"t\" is not system-versioned");
  EXPECT_EQ(RowsOf(client_, "SELECT n FROM public.t" + as_of + " WHERE id = 1"), "3\n");
}

TEST_F(TimeTravelForms, FunctionNamesMayHoldAnything) {
  mirror().store_->Execute(R"(
CREATE FUNCTION "now, ""then""|{}"() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now()';
CREATE FUNCTION "then, never"() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now()')");
  EXPECT_EQ(N("FOR SYSTEM_TIME AS OF \"now, \"\"then\"\"|{}\"()"), "3\n");
  EXPECT_EQ(
      Both(client_, "SELECT 'é' FROM t FOR SYSTEM_TIME AS OF coalesce(now(), \"then, never\"())")
          .Outcome(),
      "42P17 57 FOR SYSTEM_TIME instant must not contain volatile functions");
}

TEST_F(TimeTravelForms, CopyOfATableGivesItsRowsInEveryFormat) {
  auto direct = Direct();
  const std::string rows = "SELECT id, n, note FROM t ORDER BY id";
  for (const std::string options :
       {"", " (FORMAT csv, HEADER)", " (FORMAT binary)", " WITH CSV HEADER"}) {
    const auto want = direct.Simple("COPY (SELECT * FROM t) TO STDOUT" + options);
    ASSERT_EQ(want.Outcome(), "ok");
    for (const std::string& text :
         {"COPY t TO STDOUT" + options, "copy public.t to stdout" + options}) {
      const auto simple = client_.Simple(text), extended = client_.Extended(text);
      EXPECT_EQ(simple.rows, want.rows) << text;
      EXPECT_EQ(simple.tag, want.tag) << text;
      EXPECT_EQ(extended.rows, want.rows) << text;
      EXPECT_EQ(extended.tag, want.tag) << text;
    }
    EXPECT_EQ(client_.Simple("COPY t (note, id) TO STDOUT" + options).rows,
              direct.Simple("COPY (SELECT note, id FROM t) TO STDOUT" + options).rows);
  }
  EXPECT_EQ(
      client_.Simple("COPY \"Größe, \"\"S\"\"\".\"Täble, \"\"1\"\" €\" (\"Wert, €\") TO STDOUT")
          .rows,
      "5\n");
  EXPECT_EQ(client_.Simple("SELECT 1; COPY t TO STDOUT; SELECT 2").tag, "SELECT 1");
  EXPECT_EQ(client_.Simple("COPY plain TO STDOUT").tag, "COPY 0");
  EXPECT_EQ(client_.Simple("COPY t (é, id) TO STDOUT").state, "42703");
}

}  // namespace
}  // namespace tidemark::tests
