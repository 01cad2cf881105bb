#include "rewrite/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pg_query.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tidemark::rewrite {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Resolution> EverythingVersioned(const Statement& statement) {
  std::vector<Resolution> resolutions;
  for (const auto& reference : statement.references()) {
    Resolution resolution;
    resolution.kind = Relation::Kind::kVersioned;
    resolution.name = {"public", reference.display};
    resolutions.push_back(std::move(resolution));
  }
  return resolutions;
}

Rewritten Rewrite(std::string_view sql, const std::vector<std::string>& evaluated = {}) {
  const auto statement = Statement::Analyze(sql);
  EXPECT_TRUE(statement.has_value()) << sql;
  return statement->Render({.resolutions = EverythingVersioned(*statement), .evaluated = evaluated});
}

bool Settles(std::string_view sql) { return Rewrite(sql).settles; }

std::vector<std::string> Evaluable(std::string_view sql) {
  return Statement::Analyze(sql).value().evaluable_instants();
}

/// The position of the first character of `part` in `text`, which is ASCII up to there.
int PositionOf(std::string_view text, std::string_view part) {
  return static_cast<int>(text.find(part)) + 1;
}

base::Error ErrorOf(std::string_view sql) {
  try {
    Statement::Analyze(sql);
  } catch (const base::Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error for " << sql;
  return {base::kInternalError, "none"};
}

TEST(MayConcern, SeesTheClauseWordsInAnyCase) {
  EXPECT_TRUE(MayConcern("select * from t for system_time as of '2026-01-01'"));
  EXPECT_TRUE(MayConcern("SELECT * FROM T FOR SOURCE_TIME ALL"));
  EXPECT_TRUE(MayConcern("select * from t for Source_Position as of '0/1'"));
}

TEST(MayConcern, SeesCopyAtTheStartOfAnyStatement) {
  EXPECT_TRUE(MayConcern("copy t to stdout"));
  EXPECT_TRUE(MayConcern(" \n COPY t TO STDOUT"));
  EXPECT_TRUE(MayConcern("select 1; Copy t to stdout"));
  EXPECT_TRUE(MayConcern("/* c */ copy t to stdout"));
  EXPECT_TRUE(MayConcern("select 1; -- c\n copy t to stdout"));
}

TEST(MayConcern, SaysNoToPlainStatements) {
  EXPECT_FALSE(MayConcern(""));
  EXPECT_FALSE(MayConcern(";;; "));
  EXPECT_FALSE(MayConcern("select copy from systemtime"));
  EXPECT_FALSE(MayConcern("select _, system_, _time, source_pos from a_b_c_d"));
  EXPECT_FALSE(MayConcern("-- nothing\nselect 1"));
}

TEST(Analyze, NamesReferencesAsToRegclassReadsThem) {
  const auto statement = Statement::Analyze(
      "select * from a . \"B\" for system_time all, U&\"d!0061t\" uescape '!' for system_time all,"
      " Mixed for system_time all");
  ASSERT_EQ(statement->references().size(), 3u);
  EXPECT_EQ(statement->references()[0].name, "a.\"B\"");
  EXPECT_EQ(statement->references()[0].display, "a.B");
  EXPECT_EQ(statement->references()[0].client_offset, 14u);
  EXPECT_EQ(statement->references()[1].name, "\"dat\"");
  EXPECT_EQ(statement->references()[2].name, "Mixed");
  EXPECT_EQ(statement->references()[2].display, "mixed");
}

TEST(Analyze, ListsReferencesInTheOrderOfTheText) {
  const auto statement = Statement::Analyze(
      "with x as (select * from c for system_time all) select * from b for system_time all"
      " where exists (select from a for system_time all); copy d to stdout");
  std::vector<std::string> names;
  for (const auto& reference : statement->references()) names.push_back(reference.name);
  EXPECT_THAT(names, ElementsAre("c", "b", "a", "d"));
  EXPECT_EQ(statement->references()[0].use, Statement::Reference::Use::kClause);
  EXPECT_EQ(statement->references()[3].use, Statement::Reference::Use::kCopy);
}

TEST(Analyze, ListsTheFunctionsOfInstants) {
  const auto statement = Statement::Analyze(
      "select * from t for system_time from now() - make_interval(days => 1) to S.\"F\"(now())");
  EXPECT_THAT(statement->references()[0].functions,
              ElementsAre("\"now\"", "\"make_interval\"", "\"s\".\"F\""));
}

TEST(Analyze, OffersStableInstantsForEvaluation) {
  EXPECT_THAT(Evaluable("select * from t for system_time as of now() - interval '1 hour' as x"),
              ElementsAre("now() - interval '1 hour'"));
  EXPECT_THAT(Evaluable("explain select * from t for source_time as of date '2026-01-01'"),
              ElementsAre("date '2026-01-01'"));
  EXPECT_THAT(Evaluable("declare c cursor for select * from t for system_time as of now();"),
              ElementsAre("now()"));
  EXPECT_THAT(Evaluable("select * from t for system_time between '2026-01-01' and now(),"
                        " u for system_time as of now()"),
              ElementsAre("now()"));
}

TEST(Analyze, OffersNoEvaluationOfWhatIsNotTheSameNow) {
  for (std::string_view sql :
       {"select * from t for system_time as of '2026-01-01'",
        "select * from t for system_time as of $1", "select * from u, t for system_time as of u.at",
        "select * from t for source_position as of pg_current_wal_lsn()",
        "prepare p as select * from t for system_time as of now()",
        "create view v as select * from t for system_time as of now()",
        "create materialized view v as select * from t for system_time as of now()",
        "select 1; select * from t for system_time as of now()"}) {
    EXPECT_THAT(Evaluable(sql), IsEmpty()) << sql;
  }
}

TEST(Analyze, GivesHintsThatSayWhatToWrite) {
  EXPECT_EQ(ErrorOf("select * from t for system_time '2026-01-01'").hint(),
            "Write AS OF, FROM … TO, BETWEEN … AND, CONTAINED IN or ALL.");
  EXPECT_EQ(ErrorOf("select * from t for system_time as of now() - $1 x").hint(),
            "After an instant with an operator, write AS before the alias.");
  EXPECT_EQ(ErrorOf("copy t for system_time as of '2026-01-01' to stdout").hint(),
            "Write COPY (SELECT … FROM … FOR SYSTEM_TIME …) TO.");
}

TEST(Analyze, LeavesTextWithoutClausesToTheServer) {
  for (std::string_view sql : {"",
                               ";",
                               "system_time",
                               "for system_time'",
                               "'for system_time as of",
                               "\"for system_time",
                               "$$ for system_time as of '2026' ",
                               "/* for system_time as of",
                               "for \"system_time\" as of",
                               "selec * form system_time",
                               "copy",
                               "copy t",
                               "copy t to",
                               "copy 'x",
                               "copy t from stdin",
                               "copy (select 1) to stdout",
                               ")))((( source_time",
                               "\xff\xfe system_time \x80",
                               "select for update system_time",
                               "select $1$2 source_position for for for",
                               "U&\"\\",
                               "select 1_000 as system_time"}) {
    EXPECT_FALSE(Statement::Analyze(sql).has_value()) << sql;
  }
  EXPECT_FALSE(Statement::Analyze(std::string_view("copy t to stdout\0system_time", 28)));
}

TEST(Analyze, ReportsWhatTheScannerRefusesBesideAClause) {
  const base::Error error = ErrorOf("select * from t for system_time as of '2026-01-01");
  EXPECT_EQ(error.state(), base::kSyntaxError);
  EXPECT_EQ(error.message(), "unterminated quoted string at or near \"'2026-01-01\"");
  EXPECT_EQ(error.position(), 39);
}

TEST(Analyze, RefusesDepthThatWouldExhaustTheStack) {
  std::string sql = "select 1";
  for (int i = 0; i < 300'000; ++i) sql += "+1";
  EXPECT_EQ(ErrorOf(sql + " from t for system_time all").state(), base::SqlState("54001"));
  EXPECT_FALSE(Statement::Analyze("copy (" + sql + ") to stdout").has_value());
  std::string unions = "select 1, 2 from t for system_time all";
  for (int i = 0; i < 100'000; ++i) unions += " union select 1, 2";
  EXPECT_EQ(ErrorOf(unions).state(), base::SqlState("54001"));
}

std::string Repeat(int times, std::string_view text) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Analyze, ReadsStatementsAsDeepAsItAllows) {
  const std::string from = " from t for system_time all";
  for (const std::string& sql : {
           "select 1" + Repeat(1'400, "+1") + from,
           "select 1" + Repeat(1'400, "::int") + from,
           "select " + Repeat(2'900, "- ") + "a" + from,
           "select " + Repeat(1'400, "(") + "1" + Repeat(1'400, ")") + from,
           "select 1, 2" + from + Repeat(1'400, " union select 1, 2"),
           "select 1" + from + Repeat(590, " join a on b"),
           "select 1" + from + Repeat(590, " join a on b and c"),
           "select " + Repeat(310, "(select ") + "1" + Repeat(310, ")") + from,
           "select 1 from " + Repeat(260, "(select from ") + "a" + Repeat(260, ") b") + ", t " +
               from.substr(8),
           "select case" + Repeat(700, " when a then case") + " when a then 1 end" +
               Repeat(700, " end") + from,
       }) {
    EXPECT_TRUE(Statement::Analyze(sql).has_value()) << sql.substr(0, 60);
  }
}

TEST(Analyze, ReadsLongFlatStatements) {
  std::string sql = "select * from t for system_time all where a in (1";
  for (int i = 0; i < 20'000; ++i) sql += ", 1";
  sql += ") or a = 1";
  for (int i = 0; i < 20'000; ++i) sql += " or a = f(1)";
  EXPECT_TRUE(Statement::Analyze(sql).has_value());
}

TEST(Render, SettlesWhenAnInstantIsEvaluatedAtExecution) {
  EXPECT_TRUE(Settles("select * from t for system_time as of $1"));
  EXPECT_TRUE(Settles("select * from t for system_time as of now()"));
  EXPECT_TRUE(Settles("select * from t for system_time from '2026-01-01' to now()"));
  EXPECT_TRUE(Settles("select * from u, t for system_time as of u.at"));
  EXPECT_TRUE(Settles("select * from t for system_time as of 'Now'"));
}

TEST(Render, DoesNotSettleForLiterals) {
  EXPECT_FALSE(Settles("select * from t for system_time as of '2026-01-01'"));
  EXPECT_FALSE(Settles("select * from t for system_time all"));
  EXPECT_FALSE(Settles("select * from t for source_time between '2026-01-01' and '2026-01-02'"));
  EXPECT_FALSE(Settles("copy t to stdout"));
}

TEST(Render, PutsEvaluatedInstantsInAsConstants) {
  const Rewritten rewritten = Rewrite(
      "select * from t for system_time as of now() - interval '1 day' as x,"
      " u for system_time from '2026-01-01' to now()",
      {"2026-11-28 12:00:00+00", "o'clock"});
  EXPECT_EQ(rewritten.sql,
            "select * from tidemark.as_of_tx(NULL::\"public\".\"t\","
            " tidemark.tx_at('\"public\".\"t\"'::regclass, '2026-11-28 12:00:00+00'::timestamptz))"
            " as x, tidemark.versions(NULL::\"public\".\"u\", 'system', 'from_to', '2026-01-01',"
            " 'o''clock'::timestamptz) AS \"u\"");
  EXPECT_TRUE(rewritten.settles);
}

TEST(Render, QuotesNamesWithQuotesAndBackslashes) {
  const auto statement =
      Statement::Analyze("select * from \"o'r\\\"\"d\" for system_time as of '1'");
  const std::vector<Resolution> resolutions = {
      {Resolution::Kind::kVersioned, {"s'", "o'r\\\"d"}, {}}};
  EXPECT_EQ(statement->Render({.resolutions = resolutions}).sql,
            "select * from tidemark.as_of_tx(NULL::\"s'\".\"o'r\\\"\"d\","
            " tidemark.tx_at(E'\"s''\".\"o''r\\\\\"\"d\"'::regclass, '1')) AS \"o'r\\\"\"d\"");
}

TEST(Render, NeedsNoGrammarForStatementsWithoutClauses) {
  const std::string newer = "merge into x using y on true when matched then delete returning x.*; ";
  EXPECT_EQ(Rewrite(newer + "select * from a for system_time all").sql,
            newer +
                "select * from tidemark.versions(NULL::\"public\".\"a\", 'system', 'all', NULL,"
                " NULL) AS \"a\"");
}

TEST(Render, RefusesAnswersToOtherQuestions) {
  const auto statement = Statement::Analyze("select * from t for system_time all");
  EXPECT_THROW(statement->Render({.resolutions = {}}), base::Error);
}

TEST(Positions, InsideInstantsAndAfterThemPointIntoTheClientsText) {
  const std::string sql = "select é, x from ö for system_time as of nòw() where x = 1 and nope";
  const Rewritten rewritten = Rewrite(sql);
  const auto client = [&](std::string_view part) {
    // Both texts hold the same multi-byte characters before `part`.
    size_t characters = 1;
    for (char c : std::string_view(rewritten.sql).substr(0, rewritten.sql.find(part))) {
      characters += (c & 0xC0) != 0x80;
    }
    return rewritten.positions.ToClient(static_cast<int>(characters));
  };
  EXPECT_EQ(client("é"), 8);
  EXPECT_EQ(client("tidemark.as_of_tx"), 18);
  EXPECT_EQ(client("tidemark.tx_at"), 42);
  EXPECT_EQ(client("nòw()"), 42);
  EXPECT_EQ(client("òw()"), 43);
  EXPECT_EQ(client("AS \"ö\""), 18);
  EXPECT_EQ(client("where"), 48);
  EXPECT_EQ(client("nope"), 64);
  EXPECT_EQ(rewritten.positions.ToClient(100'000), 68);
}

TEST(Positions, OfARewrittenColumnPointAtItsSchema) {
  const std::string sql = "select public.t.a, b from t for system_time all";
  const Rewritten rewritten = Rewrite(sql);
  EXPECT_EQ(rewritten.positions.ToClient(PositionOf(rewritten.sql, "t.a")),
            PositionOf(sql, "public.t.a"));
  EXPECT_EQ(rewritten.positions.ToClient(PositionOf(rewritten.sql, ".a")), PositionOf(sql, ".a"));
  EXPECT_EQ(rewritten.positions.ToClient(PositionOf(rewritten.sql, "b")), PositionOf(sql, "b f"));
}

TEST(Positions, OfACopyPointAtNameAndColumns) {
  const std::string sql = "copy t (a, nope) to stdout";
  const Rewritten rewritten = Rewrite(sql);
  EXPECT_EQ(rewritten.positions.ToClient(PositionOf(rewritten.sql, "nope")),
            PositionOf(sql, "nope"));
  EXPECT_EQ(rewritten.positions.ToClient(PositionOf(rewritten.sql, "t)")), PositionOf(sql, "t ("));
}

TEST(Positions, CountBytesOfOtherEncodingsAsCharacters) {
  const base::Error error = ErrorOf("select '\xe9\xe8' from t for system_time as as");
  EXPECT_EQ(error.position(), 39);
}

}  // namespace
}  // namespace tidemark::rewrite
