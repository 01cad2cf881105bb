// What is special to ADBC: finding drivers, types of two real databases, cursors through
// parameters.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "source/adbc/adbc_relation.h"
#include "tests/cluster.h"
#include "tests/source/loaded.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {
namespace {

using source::AdbcOptions;
using source::OpenAdbcRelation;

class Adbc : public testing::Test {
 protected:
  Adbc()
      : store_(pg::Connection::Open({.dsn = NewDatabase()},
                                    base::Deadline::After(std::chrono::seconds(30)))) {}

  std::string SqliteFile() const { return (folder_.path() / "file.db").string(); }
  AdbcOptions Sqlite(const std::string& relation, const std::string& query = "") const {
    return {.driver = {.driver = AdbcDriverPath("sqlite"),
                       .entrypoint = "",
                       .options = {{"uri", SqliteFile()}}},
            .relation = relation,
            .query = query};
  }
  static base::Error ErrorOf(const std::function<void()>& act) {
    try {
      act();
    } catch (const base::Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return base::Error(base::kInternalError, "no error");
  }

  TemporaryFolder folder_;
  pg::Connection store_;
};

TEST_F(Adbc, AMissingDriverIsRefusedWithWhatToDo) {
  for (const char* driver : {"adbc_driver_that_nobody_has", "/nowhere/libdriver.so"}) {
    const auto relation = OpenAdbcRelation(
        {.driver = {.driver = driver, .entrypoint = "", .options = {}}, .relation = "t",
         .query = ""});
    const base::Error error = ErrorOf([&] { relation->Describe(Soon()); });
    EXPECT_EQ(error.state().view(), "58P01") << error.Full();
    EXPECT_THAT(error.message(), testing::HasSubstr(driver));
    EXPECT_NE(error.hint(), "");
    EXPECT_EQ(ErrorOf([&] { relation->Check({}, Soon()); }).state().view(), "58P01");
  }
}

TEST_F(Adbc, ADriverIsFoundByItsName) {
  RunThroughAdbc("sqlite", SqliteFile(), {"CREATE TABLE t (id integer)",
                                          "INSERT INTO t VALUES (1)"});
  std::ofstream(folder_.path() / "by_name.toml")
      << "name = 'SQLite'\n[Driver]\nshared = '" << AdbcDriverPath("sqlite") << "'\n";
  ::setenv("ADBC_DRIVER_PATH", folder_.path().c_str(), 1);
  AdbcOptions options = Sqlite("t");
  options.driver.driver = "by_name";
  const auto relation = OpenAdbcRelation(options);
  EXPECT_EQ(relation->Describe(Soon()).columns.size(), 1U);
  ::unsetenv("ADBC_DRIVER_PATH");
}

TEST_F(Adbc, AServerThatIsNotThereIsAnError) {
  const auto relation = OpenAdbcRelation(
      {.driver = {.driver = AdbcDriverPath("postgresql"),
                  .entrypoint = "",
                  .options = {{"uri", "host=" + folder_.path().string() + " dbname=none"}}},
       .relation = "t",
       .query = ""});
  EXPECT_THROW(relation->Check({}, Soon()), base::Error);
}

TEST_F(Adbc, SqliteNamesAreQuotedAndAQueryCanStandForARelation) {
  RunThroughAdbc("sqlite", SqliteFile(),
                 {R"(CREATE TABLE "Odd ""name"".x" (id integer, "select" text))",
                  R"(INSERT INTO "Odd ""name"".x" VALUES (1, 'a'), (2, NULL), (3, 'c'))"});
  const auto named = OpenAdbcRelation(Sqlite(R"("Odd ""name"".x")"));
  EXPECT_EQ(Load(*named->ReadAll({}, Soon()), store_, "named").end.rows, 3);
  const auto query =
      OpenAdbcRelation(Sqlite("", R"(SELECT id * 2 AS twice FROM "Odd ""name"".x")"));
  Load(*query->ReadAll({}, Soon()), store_, "query");
  EXPECT_EQ(store_.Value("SELECT string_agg(twice::text, ' ' ORDER BY twice) FROM query"), "2 4 6");
  EXPECT_THROW(OpenAdbcRelation(Sqlite("a.b.c.d")), base::Error);
}

TEST_F(Adbc, SqliteValuesArriveAsTheyAre) {
  RunThroughAdbc("sqlite", SqliteFile(),
                 {"CREATE TABLE t (id integer, r real, t text, b blob)",
                  "INSERT INTO t VALUES (9223372036854775807, -0.1, 'é', x'00ff'), "
                  "(-9223372036854775808, 1e308, '', x''), (NULL, NULL, NULL, NULL)"});
  const auto relation = OpenAdbcRelation(Sqlite("t"));
  Load(*relation->ReadAll({}, Soon()), store_, "loaded");
  EXPECT_EQ(store_.Value("SELECT string_agg(l::text, ' ' ORDER BY _ordinal) FROM loaded l"),
            R"((1,9223372036854775807,-0.1,é,"\\x00ff") )"
            R"((2,-9223372036854775808,1e+308,"","\\x") (3,,,,))");
}

TEST_F(Adbc, AKeyThatIsNotUniqueIsAProblem) {
  RunThroughAdbc("sqlite", SqliteFile(),
                 {"CREATE TABLE t (a integer, b integer)",
                  "INSERT INTO t VALUES (1, 1), (1, 2), (2, 1)"});
  const auto relation = OpenAdbcRelation(Sqlite("t"));
  EXPECT_TRUE(relation->Check({.key = {"a", "b"}, .cursor = ""}, Soon()).empty());
  const auto problems = relation->Check({.key = {"a"}, .cursor = ""}, Soon());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].severity, source::Severity::kRefusesTable);
}

TEST_F(Adbc, ACompositeCursorGoesOnInTheMiddleOfTies) {
  RunThroughAdbc("sqlite", SqliteFile(),
                 {"CREATE TABLE t (at text, k integer, part text)",
                  "INSERT INTO t VALUES ('b', 1, 'x'), ('a', 1, 'x'), ('b', 1, 'y'), ('b', 2, 'a'),"
                  " ('c', 0, '')"});
  const auto relation = OpenAdbcRelation(Sqlite("t"));
  const source::CursorPlan plan{.cursor = "at",
                                .key = {"k", "part"},
                                .after = source::CursorPosition{"b", {"1", "x"}}};
  const Loaded loaded = Load(*relation->ReadSince(plan, {}, Soon()), store_, "later");
  EXPECT_EQ(store_.Value("SELECT string_agg(at || k || part, ' ' ORDER BY _ordinal) FROM later"),
            "b1y b2a c0");
  EXPECT_EQ(*loaded.end.position.resume, (source::CursorPosition{"c", {"0", ""}}));
}

TEST_F(Adbc, PostgresTypesThroughTheDriverAreThoseOfTheTable) {
  const std::string uri = NewDatabase();
  RunThroughAdbc("postgresql", uri,
                 {"CREATE TABLE t (b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8,"
                  " n numeric, tx text, by bytea, d date, ti time, ts timestamp, tz timestamptz,"
                  " iv interval, ai int4[], at text[])",
                  "INSERT INTO t VALUES (true, -1, 2, 3, 1.5, 0.1, 12345678901234567890.10, 'é',"
                  " '\\x00ff', '2026-11-28', '12:00:00.000001', '2026-11-28 12:00:00.123456',"
                  " '2026-11-28 12:00:00.123456+02', '1 mon 2 days 00:00:00.5', '{1,NULL}',"
                  " '{a,NULL}'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
                  " NULL, NULL, NULL, NULL, NULL)"});
  const auto relation = OpenAdbcRelation({.driver = {.driver = AdbcDriverPath("postgresql"),
                                                     .entrypoint = "",
                                                     .options = {{"uri", uri}}},
                                          .relation = "public.t",
                                          .query = ""});
  const auto reader = relation->ReadAll({}, Soon());
  Load(*reader, store_, "loaded");
  store_.Execute("SET TimeZone = 'UTC'");
  EXPECT_EQ(store_.Value("SELECT string_agg(l::text, ' ' ORDER BY _ordinal) FROM loaded l"),
            R"((1,t,-1,2,3,1.5,0.1,12345678901234567890.10,é,"\\x00ff",2026-11-28,12:00:00.000001,)"
            R"("2026-11-28 12:00:00.123456","2026-11-28 10:00:00.123456+00",)"
            R"("1 mon 2 days 00:00:00.5","{1,NULL}","{a,NULL}") (2,,,,,,,,,,,,,,,,))");
  EXPECT_EQ(store_.Value("SELECT pg_typeof(n)::text FROM loaded LIMIT 1"), "numeric");
}

}  // namespace
}  // namespace tidemark::tests
