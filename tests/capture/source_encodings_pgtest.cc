// Sources in other encodings than UTF-8: LATIN1, which their server converts, and SQL_ASCII, in
// which text may be anything. One bad value is named and does not hold up what was committed before
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "capture/capture_run.h"
#include "source/postgres/postgres_relation.h"
#include "temporal/store.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SourceEncodings : public MirrorFixture {
 protected:
  void UseSourceIn(const std::string& encoding) {
    auto& sources = Cluster::SharedSource();
    const auto name = "encoded_" + options_.name;
    sources.Connect().Execute("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING '" +
                              encoding +
                              "' LC_COLLATE 'C' LC_CTYPE 'C'");
    options_.source_dsn = sources.Dsn(name);
    source_.emplace(sources.Connect(name));
  }
  /// public.t of the source as shop.t.
  capture::CaptureReport CaptureWhole();
  std::string Problems() {
    return store_->Value("SELECT coalesce((SELECT state || problems::text FROM tidemark.progress), "
                         "'')");
  }
  /// Waits until status says so.
  std::string ExpectProblem(const std::string& text) {
    const auto deadline = base::Deadline::After(30s);
    std::string problems;
    do {
      std::this_thread::sleep_for(20ms);
      if (store_->Value("SELECT to_regclass('tidemark.progress') IS NULL") == "t") continue;
      problems = Problems();
    } while (!deadline.passed() && problems.find(text) == std::string::npos);
    EXPECT_THAT(problems, HasSubstr(text));
    return problems;
  }
  void ExpectRows(const std::string& sql, const std::string& rows) {
    const auto deadline = base::Deadline::After(30s);
    std::string got;
    do {
      std::this_thread::sleep_for(20ms);
      try {
        got = Rows(*store_, sql);
      } catch (const base::Error& error) {
        if (error.state() != base::kUndefinedTable) throw;  // not there yet
      }
    } while (!deadline.passed() && got != rows);
    EXPECT_EQ(got, rows);
  }
};

capture::CaptureReport SourceEncodings::CaptureWhole() {
  return capture::RunCapture({.store_dsn = options_.store_dsn,
                              .datasets = {{.name = "shop.t",
                                            .in_store = {"shop", "t"},
                                            .strategy = temporal::Strategy::kSnapshot,
                                            .key = {"id"},
                                            .cursor = "",
                                            .overlap = "",
                                            .source = "shop",
                                            .source_kind = "postgres",
                                            .open = [dsn = options_.source_dsn] {
                                              return source::OpenPostgresRelation({.dsn = dsn,
                                                                                   .relation = "t",
                                                                                   .snapshot = ""});
                                            },
                                            .mirror = std::nullopt}}},
                             {});
}

constexpr const char* kTexts = "SELECT id, v FROM t ORDER BY id";

TEST_F(SourceEncodings, Latin1IsConvertedByCopyStreamAndCompleteCapture) {
  UseSourceIn("LATIN1");
  source_->Execute("CREATE TYPE pair AS (a text, b text[]); "
                   "CREATE TABLE t (id int PRIMARY KEY, v text, j jsonb, p pair); "
                   "INSERT INTO t VALUES (1, 'café', '{\"é\": \"ü\"}', ROW('ß', '{à,NULL}'))");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (2, 'naïve', '\"ø\"', ROW('å', '{æ}')); "
                   "UPDATE t SET v = v || '©' WHERE id = 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(Rows(*store_, kTexts), "1|café©\n2|naïve\n");
  const auto report = CaptureWhole();
  ASSERT_EQ(report.members.size(), 1U);
  if (report.members[0].error) FAIL() << report.members[0].error->Full();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM shop.t ORDER BY id"),
            Rows(*store_, "SELECT * FROM public.t ORDER BY id"));
}

TEST_F(SourceEncodings, UndecodableTextInTheStreamIsNamedAndWhatWasBeforeIsReadable) {
  UseSourceIn("SQL_ASCII");
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); "
                   "INSERT INTO t VALUES (1, E'caf\\303\\251')");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (2, 'before')");
  source_->Execute("BEGIN; INSERT INTO t VALUES (3, 'good'); INSERT INTO t VALUES (4, "
                   "E'caf\\351'); COMMIT");
  source_->Execute("INSERT INTO t VALUES (5, 'after')");
  EXPECT_THAT(ExpectProblem("key id=4"),
              AllOf(HasSubstr("column v of public.t has text that is not UTF-8"),
                    HasSubstr("failed"),
                    HasSubstr("22021"), HasSubstr("0xe9")));
  ExpectRows(kTexts, "1|café\n2|before\n");
  // Mended at the source and read whole, the table goes on beyond that commit.
  source_->Execute("UPDATE t SET v = E'caf\\303\\251' WHERE id = 4");
  store_->Execute("SELECT tidemark.request_resync(id, 'mended') FROM tidemark.dataset");
  ExpectRows(kTexts, "1|café\n2|before\n3|good\n4|café\n5|after\n");
}

TEST_F(SourceEncodings, UndecodableTextInTheFirstCopyIsNamedAndNothingIsPublished) {
  UseSourceIn("SQL_ASCII");
  source_->Execute("CREATE TABLE t (id text PRIMARY KEY, v text[]); "
                   "INSERT INTO t VALUES ('fine', '{a}'), (E'k\\351y', ARRAY['b', NULL, "
                   "E'\\377'])");
  Start();
  EXPECT_THAT(ExpectProblem("column id of public.t has text"), HasSubstr("key id='k?y'"));
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.basis"), "0");
  source_->Execute("UPDATE t SET id = 'key' WHERE id <> 'fine'");
  ExpectProblem("column v of public.t has text");
  source_->Execute("UPDATE t SET v = '{c}' WHERE id = 'key'");
  ExpectRows("SELECT * FROM t ORDER BY id", "fine|{a}\nkey|{c}\n");
}

TEST_F(SourceEncodings, UndecodableBytesAreReplacedInPlaceWhereThatIsWanted) {
  UseSourceIn("SQL_ASCII");
  options_.replace_undecodable = true;
  const std::string rows =
      "(1, E'\\377caf\\351\\302\\251', E'\\351', E'\\351', ARRAY[E'a\\351', NULL, E'\\303\\251'], "
      "  ARRAY[ROW(1, E'\\377')::pair], E'{\"\\351\": 1}', E'{\"\\351\": [\"\\351\", 2]}', "
      "  E'<a>\\303\\251</a>', E'\\351', E'\\351')";
  source_->Execute("CREATE EXTENSION citext; CREATE TYPE pair AS (n int, t text); "
                   "CREATE DOMAIN named AS varchar(5); "
                   "CREATE TABLE t (id int PRIMARY KEY, v text, c char(3), vc varchar(3), a "
                   "text[], "
                   "p pair[], j json, jb jsonb, x xml, d named, ci citext); "
                   "COMMENT ON TABLE t IS E'\\351'; COMMENT ON COLUMN t.v IS E'\\351'; "
                   "CREATE TABLE k (id text PRIMARY KEY, v text); INSERT INTO k VALUES (E'\\351', "
                   "'a'); "
                   "CREATE TABLE m (v text); ALTER TABLE m REPLICA IDENTITY FULL; "
                   "INSERT INTO m VALUES (E'\\351'), (E'\\350'); "
                   "INSERT INTO t VALUES " + rows);
  const std::string all = "SELECT * FROM t ORDER BY id";
  const std::string seen =
      "|?caf?©|?  |?|{a?,NULL,é}|{\"(1,?)\"}|{\"?\": 1}|{\"?\": [\"?\", 2]}|<a>é</a>|?|?\n";
  Start();
  CatchUp();
  EXPECT_EQ(Rows(*store_, all), "1" + seen);
  source_->Execute("UPDATE t SET id = 2; INSERT INTO t VALUES " + rows);
  source_->Execute("UPDATE k SET v = 'b'; UPDATE k SET id = E'\\377\\377'");
  source_->Execute("DELETE FROM m WHERE v = E'\\351'; UPDATE m SET v = v || 'x'");
  CatchUp();
  EXPECT_EQ(Rows(*store_, all), "1" + seen + "2" + seen);
  EXPECT_EQ(Rows(*store_, "SELECT * FROM k"), "??|b\n");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM m"), "?x\n");
  EXPECT_EQ(store_->Value("SELECT obj_description('t'::regclass)"), "?");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.m"), "3");
}

TEST_F(SourceEncodings, ACompleteCaptureOfUndecodableTextFailsAndWhatWasBeforeIsReadable) {
  UseSourceIn("SQL_ASCII");
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); "
                   "INSERT INTO t VALUES (1, E'caf\\303\\251')");
  {
    auto store = temporal::OpenStore(options_.store_dsn, base::Deadline::After(30s));
    temporal::Migrate(store);
  }
  EXPECT_TRUE(CaptureWhole().basis);
  source_->Execute("INSERT INTO t VALUES (2, E'caf\\351')");
  const auto report = CaptureWhole();
  EXPECT_FALSE(report.basis);
  const auto failure = report.Failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->state(), base::kCharacterNotInRepertoire) << failure->Full();
  EXPECT_EQ(Rows(*store_, "SELECT id, v FROM shop.t"), "1|café\n");
}

TEST_F(SourceEncodings, ValuesThatCannotBeWalkedAreRefusedByTheStore) {
  UseSourceIn("SQL_ASCII");
  options_.replace_undecodable = true;
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v tsvector)");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (1, 'fine')");
  source_->Execute("INSERT INTO t VALUES (2, E'''\\351'''::tsvector)");
  EXPECT_THAT(ExpectProblem("key id=2"), HasSubstr("22021"));
  ExpectRows(kTexts, "1|'fine'\n");
}

TEST_F(SourceEncodings, NamesThatAreNotUtf8LeaveTheirTableOut) {
  UseSourceIn("SQL_ASCII");
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'); "
                   "DO $$ BEGIN EXECUTE E'CREATE TABLE \"n\\351\" (id int PRIMARY KEY)'; END $$; "
                   "CREATE TYPE mood AS ENUM ('ok'); "
                   "DO $$ BEGIN EXECUTE E'ALTER TYPE mood ADD VALUE \\'b\\351\\''; END $$; "
                   "CREATE TABLE e (id int PRIMARY KEY, m mood)");
  Start();
  CatchUp();
  EXPECT_EQ(Rows(*store_, kTexts), "1|a\n");
  EXPECT_THAT(Problems(), AllOf(HasSubstr("n?"), HasSubstr("public.e"), HasSubstr("is not UTF-8")));
}

}  // namespace
}  // namespace tidemark::tests
