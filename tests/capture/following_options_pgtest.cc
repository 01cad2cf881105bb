// What may be said of the values of a source holds however it is followed: live or on a cadence, a
// whole mirror or one relation of it; and so does what its sessions are set to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/capture_run.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

struct Way {
  const char* name;
  bool drained, single;
};

class FollowingOptions : public MirrorFixture, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    if (!GetParam().single) return;
    options_.publication = capture::SlotNameFor(options_.name);
    options_.only = {.relation = {"public", "t"}, .in_store = {"public", "t"}};
  }
  void UseSourceIn(const std::string& encoding) {
    auto& sources = Cluster::SharedSource();
    const auto name = "followed_" + options_.name + (GetParam().single ? "s" : "m") +
                      (GetParam().drained ? "d" : "l");
    sources.Connect().Execute("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING '" +
                              encoding + "' LC_COLLATE 'C' LC_CTYPE 'C'");
    options_.source_dsn = sources.Dsn(name);
    source_.emplace(sources.Connect(name));
  }
  /// Until the store has what the source has. Of a capture by hand: why it failed.
  std::optional<base::Error> Follow() {
    if (!GetParam().drained) {
      if (!thread_.joinable()) Start();
      CatchUp();
      return std::nullopt;
    }
    return capture::RunCapture({.store_dsn = options_.store_dsn,
                                .datasets = {{.name = options_.name,
                                              .in_store = {},
                                              .strategy = temporal::Strategy::kCdc,
                                              .key = {},
                                              .cursor = "",
                                              .overlap = "",
                                              .source = options_.name,
                                              .source_kind = "postgres",
                                              .open = nullptr,
                                              .mirror = options_}}},
                               {})
        .Failure();
  }
  void MustFollow() {
    const auto failure = Follow();
    if (failure) ADD_FAILURE() << failure->Full();
  }
};

TEST_P(FollowingOptions, UndecodableBytesAreReplacedInCopyAndStream) {
  UseSourceIn("SQL_ASCII");
  options_.replace_undecodable = true;
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text, a text[]); "
                   "INSERT INTO t VALUES (1, E'caf\\351', ARRAY[E'\\377', NULL])");
  MustFollow();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|caf?|{?,NULL}\n");
  source_->Execute("INSERT INTO t VALUES (2, E'\\351', '{b}')");
  MustFollow();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|caf?|{?,NULL}\n2|?|{b}\n");
}

TEST_P(FollowingOptions, UndecodableTextIsNamedWhereNothingElseIsSaid) {
  if (!GetParam().drained) GTEST_SKIP() << "source_encodings_pgtest";
  UseSourceIn("SQL_ASCII");
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')");
  MustFollow();
  source_->Execute("INSERT INTO t VALUES (2, E'caf\\351')");
  const auto failure = Follow();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->state().str(), "22021");
  EXPECT_THAT(failure->Full(), HasSubstr("key id=2"));
  EXPECT_THAT(failure->Full(), HasSubstr("encoding_errors: replace"));
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t"), "1|a\n");
}

TEST_P(FollowingOptions, TypesThatTheStoreLacksAreText) {
  source_->Execute(
      "CREATE TYPE odd; "
      "CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'textin' LANGUAGE internal IMMUTABLE STRICT; "
      "CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE "
      "STRICT; CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = text); "
      "CREATE TABLE t (id int PRIMARY KEY, o odd, os odd[]); INSERT INTO t VALUES (1, 'a', '{b}')");
  options_.unknown_as_text = true;
  MustFollow();
  ExpectSame("SELECT * FROM t ORDER BY id");
  source_->Execute("INSERT INTO t VALUES (2, 'c', NULL); UPDATE t SET o = 'd' WHERE id = 1");
  MustFollow();
  ExpectSame("SELECT * FROM t ORDER BY id");
  // Read whole again, too.
  source_->Execute("ALTER TABLE t ADD u int; ALTER TABLE t ALTER u TYPE bigint USING 7");
  const std::string all = "SELECT * FROM t ORDER BY id";
  const auto deadline = base::Deadline::After(30s);
  do {
    MustFollow();
  } while (!deadline.passed() && Rows(*store_, all) != Rows(*source_, all));
  ExpectSame(all);
}

// Values must not depend on what the role's sessions are set to.
TEST_P(FollowingOptions, DefaultsOfTheRoleChangeNoValue) {
  const auto database = source_->Value("SELECT current_database()");
  for (const char* setting : {"DateStyle = 'SQL, DMY'", "IntervalStyle = 'sql_standard'",
                              "TimeZone = 'Asia/Kathmandu'", "extra_float_digits = -3",
                              "bytea_output = 'escape'", "statement_timeout = '1ms'",
                              "search_path = 'nowhere'"}) {
    Cluster::SharedSource().Connect().Execute("ALTER DATABASE " + database + " SET " + setting);
  }
  options_.unknown_as_text = true;  // all values travel as text
  source_->Execute("CREATE TABLE public.t (id int PRIMARY KEY, d date, i interval, tz timestamptz, "
                   "f float8, b bytea)");
  const std::string row =
      "DATE '2026-02-01', INTERVAL '1 year -3 days 04:05:06', TIMESTAMPTZ '2026-02-01 "
      "03:04:05+01', "
      "0.1::float8 + 0.2, '\\x00ff'::bytea)";
  source_->Execute("INSERT INTO public.t VALUES (1, " + row);
  MustFollow();
  source_->Execute("INSERT INTO public.t VALUES (2, " + row);
  MustFollow();
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public.t"), "2");
}

INSTANTIATE_TEST_SUITE_P(, FollowingOptions,
                         ::testing::Values(Way{"LiveDataset", false, true},
                                           Way{"DrainedMirror", true, false},
                                           Way{"DrainedDataset", true, true}),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tidemark::tests
