// The snapshot strategy, end to end with a real source and a real store.
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;

class SnapshotCapture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, price numeric(10,2)); "
        "INSERT INTO items SELECT i, 'item ' || i, i * 1.5 FROM generate_series(1, 1000) i");
  }
};

TEST_F(SnapshotCapture, FirstCaptureShowsAllRowsAtOnceAndNoneBefore) {
  bool looked = false;
  progressed_ = [&](const auto&, int64_t) {
    looked = true;
    EXPECT_EQ(Value("SELECT to_regclass('public.items') IS NULL"), "t");
  };
  const auto member = Captured({Snapshot("items")});
  EXPECT_TRUE(looked);
  EXPECT_EQ(member.outcome, MemberOutcome::kPublished);
  EXPECT_EQ(member.puts, 1000);
  EXPECT_EQ(member.live_rows, 1000);
  ExpectSame("SELECT * FROM public.items ORDER BY id");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx"), "1");
  ExpectNothingLeftBehind();
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, UnchangedCaptureWritesNothingAndAdmitsTheParentVersionAgain) {
  const auto first = Captured({Snapshot("items")});
  const auto places = Rows("SELECT ctid, xmin, xmax FROM tidemark_current.d1 ORDER BY 1");
  const auto second = Captured({Snapshot("items")});
  EXPECT_EQ(second.outcome, MemberOutcome::kUnchanged);
  EXPECT_EQ(second.version, first.version);
  EXPECT_EQ(second.puts, 0);
  EXPECT_EQ(second.live_rows, 1000);
  EXPECT_EQ(Rows("SELECT ctid, xmin, xmax FROM tidemark_current.d1 ORDER BY 1"), places);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_history.d1"), "0");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx"), "1");
  EXPECT_EQ(Rows("SELECT basis, tx, puts, deletions FROM tidemark.basis_member ORDER BY 1"),
            "1|1|1000|0\n2|1|0|0\n");
  EXPECT_EQ(Rows("SELECT tx_last FROM tidemark.basis_journal ORDER BY basis"), "1\n1\n");
  EXPECT_EQ(Value("SELECT count(DISTINCT version) FROM tidemark.basis_member"), "1");
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, ChangesBecomePutsAndDeletionsAndThePastStays) {
  Captured({Snapshot("items")});
  const auto before = Rows(*source_, "SELECT id, name, price FROM public.items ORDER BY 1");
  source_->Execute(
      "UPDATE items SET price = price + 1 WHERE id <= 5; DELETE FROM items WHERE id > 997; "
      "INSERT INTO items VALUES (2000, 'new', NULL), (2001, 'newer', 0)");
  const auto member = Captured({Snapshot("items")});
  EXPECT_EQ(member.puts, 7);
  EXPECT_EQ(member.deletions, 3);
  EXPECT_EQ(member.live_rows, 999);
  ExpectSame("SELECT * FROM public.items ORDER BY id");
  EXPECT_EQ(AsOf("id, name, price", "items", 0), before);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_history.d1"), "8");
  EXPECT_EQ(Rows("SELECT op, count(*) FROM tidemark.diff_tx(NULL::public.items, 1, 2) "
                 "GROUP BY 1 ORDER BY 1"),
            "delete|3\ninsert|2\nupdate|5\n");
  ExpectNothingLeftBehind();
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, AStateReturnedToIsANewVersion) {
  const auto first = Captured({Snapshot("items")});
  source_->Execute("UPDATE items SET name = 'other' WHERE id = 1");
  const auto second = Captured({Snapshot("items")});
  source_->Execute("UPDATE items SET name = 'item 1' WHERE id = 1");
  const auto third = Captured({Snapshot("items")});
  EXPECT_NE(first.version, second.version);
  EXPECT_NE(first.version, third.version);
  EXPECT_EQ(AsOf("id, name", "items", 0), AsOf("id, name", "items", 2));
  EXPECT_NE(AsOf("id, name", "items", 0), AsOf("id, name", "items", 1));
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, UpdatesOfTheCurrentTableStayHot) {
  source_->Execute("DELETE FROM items WHERE id > 200");
  Captured({Snapshot("items")});
  source_->Execute("UPDATE items SET price = 7 WHERE id % 20 = 0");
  Captured({Snapshot("items")});
  // Row versions that follow each other in one page have no new index entry.
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_current.d1 WHERE price = 7"), "10");
  store_->Execute("SELECT pg_stat_force_next_flush()");
  const auto deadline = base::Deadline::After(20s);
  std::string counted;
  while (counted != "10|10\n" && !deadline.passed()) {
    counted = Rows("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'd1' "
                   "AND schemaname = 'tidemark_current'");
  }
  EXPECT_EQ(counted, "10|10\n");
}

TEST_F(SnapshotCapture, DuplicateKeysRefuseAFirstCaptureNamingKeysAndRows) {
  source_->Execute(
      "CREATE TABLE twice (id int, n int); INSERT INTO twice VALUES (1, 1), (2, 2), (1, 3), (3, "
      "4), "
      "(2, 5), (2, 6)");
  const auto error = Refused({Snapshot("twice")});
  EXPECT_EQ(error.state(), base::kUniqueViolation);
  EXPECT_THAT(error.message(), HasSubstr("public.twice"));
  EXPECT_THAT(error.detail(), HasSubstr("id=1 in rows 1, 3"));
  EXPECT_THAT(error.detail(), HasSubstr("id=2 in rows 2, 5, 6"));
  EXPECT_EQ(Value("SELECT to_regclass('public.twice') IS NULL"), "t");
}

TEST_F(SnapshotCapture, DuplicateKeysRefuseALaterCaptureWhetherTheKeyIsNewOrKnown) {
  source_->Execute("CREATE TABLE twice (id int, n int); INSERT INTO twice VALUES (1, 1), (2, 2)");
  Captured({Snapshot("twice")});
  source_->Execute("INSERT INTO twice VALUES (7, 1), (7, 2)");
  EXPECT_THAT(Refused({Snapshot("twice")}).detail(), HasSubstr("id=7 in rows 3, 4"));
  source_->Execute("DELETE FROM twice WHERE id = 7; INSERT INTO twice VALUES (2, 2)");
  EXPECT_THAT(Refused({Snapshot("twice")}).detail(), HasSubstr("id=2 in rows 2, 3"));
  // One key twice and another one gone: the counts alone look right.
  source_->Execute("DELETE FROM twice WHERE id = 1");
  EXPECT_EQ(Refused({Snapshot("twice")}).state(), base::kUniqueViolation);
  EXPECT_EQ(Rows("SELECT id, n FROM public.twice ORDER BY 1"), "1|1\n2|2\n");
  source_->Execute("DELETE FROM twice; INSERT INTO twice VALUES (2, 2)");
  EXPECT_EQ(Captured({Snapshot("twice")}).deletions, 1);
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, NullKeysRefuseTheCapture) {
  source_->Execute("CREATE TABLE holes (id int, n int); INSERT INTO holes VALUES (1, 1), (NULL, "
                   "2)");
  auto error = Refused({Snapshot("holes")});
  EXPECT_EQ(error.state(), base::kNotNullViolation);
  EXPECT_THAT(error.detail(), HasSubstr("id=NULL in row 2"));
  source_->Execute("DELETE FROM holes WHERE id IS NULL");
  Captured({Snapshot("holes")});
  source_->Execute("INSERT INTO holes VALUES (NULL, 5)");
  error = Refused({Snapshot("holes")});
  EXPECT_EQ(error.state(), base::kNotNullViolation);
}

TEST_F(SnapshotCapture, AtMostTenOffendersAreNamed) {
  source_->Execute("CREATE TABLE many (id int); INSERT INTO many SELECT i % 50 FROM "
                   "generate_series(0, 999) i");
  const auto error = Refused({Snapshot("many")});
  EXPECT_THAT(error.detail(), HasSubstr("id=9 in rows 10, 60, 110, 160, 210, …; and others."));
  EXPECT_THAT(error.detail(), ::testing::Not(HasSubstr("id=10 ")));
}

TEST_F(SnapshotCapture, AnEmptySourceClosesAllRowsAndAFailedReadClosesNone) {
  source_->Execute(
      "CREATE TABLE flaw (bad int); INSERT INTO flaw VALUES (500); "
      "CREATE VIEW shown AS SELECT id, name, 1 / (id - (SELECT bad FROM flaw)) AS q FROM items");
  source_->Execute("UPDATE flaw SET bad = -1");
  Captured({Snapshot("shown")});
  source_->Execute("UPDATE flaw SET bad = 900");
  EXPECT_EQ(Refused({Snapshot("shown")}).state(), base::SqlState("22012"));
  EXPECT_EQ(Value("SELECT count(*) FROM public.shown"), "1000");
  source_->Execute("DELETE FROM items");
  const auto member = Captured({Snapshot("shown")});
  EXPECT_EQ(member.deletions, 1000);
  EXPECT_EQ(member.live_rows, 0);
  EXPECT_EQ(Value("SELECT count(*) FROM public.shown"), "0");
  EXPECT_EQ(Captured({Snapshot("shown")}).outcome, MemberOutcome::kUnchanged);
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, AnEmptyFirstCaptureIsAVersion) {
  source_->Execute("DELETE FROM items");
  const auto first = Captured({Snapshot("items")});
  EXPECT_EQ(first.version.size(), 64u);
  EXPECT_EQ(Value("SELECT count(*) FROM public.items"), "0");
  source_->Execute("INSERT INTO items VALUES (1, 'one', 1)");
  EXPECT_EQ(Captured({Snapshot("items")}).puts, 1);
  EXPECT_EQ(AsOf("id", "items", 0), "");
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, ACompositeKeyIsAKey) {
  source_->Execute(
      "CREATE TABLE prices (sku text, day date, price numeric, PRIMARY KEY (sku, day)); "
      "INSERT INTO prices SELECT 'sku ' || i % 10, date '2026-01-01' + i / 10, i FROM "
      "generate_series(0, 99) i");
  Captured({Snapshot("prices", {"sku", "day"})});
  source_->Execute("UPDATE prices SET price = -1 WHERE sku = 'sku 3' AND day = '2026-01-02'");
  EXPECT_EQ(Captured({Snapshot("prices", {"sku", "day"})}).puts, 1);
  ExpectSame("SELECT * FROM public.prices ORDER BY sku, day");
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, ValuesThatAreEqualButDifferAreChanges) {
  source_->Execute("CREATE TABLE images (id int PRIMARY KEY, n numeric, f float8, j json); "
                   "INSERT INTO images VALUES (1, 1.0, 0.0, '{\"a\":1}')");
  Captured({Snapshot("images")});
  source_->Execute("UPDATE images SET n = 1.00");
  EXPECT_EQ(Captured({Snapshot("images")}).puts, 1);
  source_->Execute("UPDATE images SET f = '-0'");
  EXPECT_EQ(Captured({Snapshot("images")}).puts, 1);
  source_->Execute("UPDATE images SET j = '{\"a\": 1}'");
  EXPECT_EQ(Captured({Snapshot("images")}).puts, 1);
  ExpectSame("SELECT * FROM public.images");
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, UserDefinedTypesAndTypesWithoutABinaryFormAreKept) {
  source_->Execute(
      "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE place AS (street text, mood mood); "
      "CREATE DOMAIN score AS int CHECK (VALUE >= 0); "
      "CREATE TABLE typed (id int PRIMARY KEY, m mood, ms mood[], p place, s score, a aclitem, "
      "t tsvector, r int4range, b bit varying(7), x xml, c money); "
      "INSERT INTO typed VALUES (1, 'ok', '{sad,ok}', ROW('high', 'sad'), 7, "
      "'postgres=r/postgres', 'cat', '[1,5)', B'101', '<a/>', 12.5), "
      "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
  Captured({Snapshot("typed")});
  ExpectSame("SELECT * FROM public.typed ORDER BY id");
  source_->Execute("UPDATE typed SET ms = '{ok}', p = ROW('low', 'ok') WHERE id = 1; "
                   "UPDATE typed SET a = 'postgres=w/postgres' WHERE id = 2");
  EXPECT_EQ(Captured({Snapshot("typed")}).puts, 2);
  ExpectSame("SELECT * FROM public.typed ORDER BY id");
  EXPECT_EQ(Captured({Snapshot("typed")}).outcome, MemberOutcome::kUnchanged);
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, WideValuesAreComparedWhole) {
  source_->Execute("CREATE TABLE wide (id int PRIMARY KEY, v text); "
                   "INSERT INTO wide SELECT i, repeat(md5(i::text), 20000) FROM "
                   "generate_series(1, 5) i");
  Captured({Snapshot("wide")});
  EXPECT_EQ(Captured({Snapshot("wide")}).outcome, MemberOutcome::kUnchanged);
  source_->Execute("UPDATE wide SET v = overlay(v placing 'X' from 600000) WHERE id = 3");
  EXPECT_EQ(Captured({Snapshot("wide")}).puts, 1);
  ExpectSame("SELECT id, md5(v) FROM public.wide ORDER BY id");
  ExpectChainsHold();
}

TEST_F(SnapshotCapture, SourceTimeIsWhenItWasReadAndSourcePositionsAreRefused) {
  Captured({Snapshot("items")});
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.as_of_source(NULL::public.items, "
                  "(SELECT source_time FROM tidemark.tx))"),
            "1000");
  try {
    Value("SELECT count(*) FROM tidemark.as_of_position(NULL::public.items, '0/1')");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kFeatureNotSupported);
  }
  try {
    Value("SELECT count(*) FROM tidemark.as_of_source(NULL::public.items, now())");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kNotInPrerequisiteState);
  }
}

TEST_F(SnapshotCapture, FullHistoryPartitionsAreClosedAndSealed) {
  history_.rows_aimed = 100;
  history_.merge_bytes = 0;
  Captured({Snapshot("items")});
  for (int i = 0; i < 4; ++i) {
    source_->Execute("UPDATE items SET price = price + 1 WHERE id <= 120");
    Captured({Snapshot("items")});
  }
  EXPECT_GE(std::stoi(Value("SELECT count(*) FROM tidemark.history_partition")), 3);
  EXPECT_GE(std::stoi(Value("SELECT count(*) FROM tidemark.history_partition WHERE sealed")), 1);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(AsOf("min(price)", "items", i),
              Rows("SELECT (1.5 + " + std::to_string(i) + ")::numeric(10,2)"));
  }
  ExpectChainsHold();
}

}  // namespace
}  // namespace tidemark::tests
