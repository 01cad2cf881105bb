// What happens to a captured dataset when its source changes its columns or its key is declared
// anew.
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;

class ShapeCapture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL, n int); "
        "INSERT INTO t SELECT i, 'a' || i, i * 10 FROM generate_series(1, 5) i");
    Captured({Snapshot("t")});
  }
};

TEST_F(ShapeCapture, AnAddedColumnOfNullsMakesNoVersionAndItsValuesDo) {
  source_->Execute("ALTER TABLE t ADD extra date");
  EXPECT_EQ(Captured({Snapshot("t")}).outcome, MemberOutcome::kUnchanged);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  source_->Execute("UPDATE t SET extra = '2026-01-01' WHERE id = 2");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 1);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(AsOf("id, extra", "t", 0), "1|NULL\n2|NULL\n3|NULL\n4|NULL\n5|NULL\n");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, AColumnAddedWithAValueIsAVersionOfEveryRowAndThePastHasNone) {
  source_->Execute("ALTER TABLE t ADD extra int NOT NULL DEFAULT 7");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 5);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(AsOf("id, n, extra", "t", 0),
            "1|10|NULL\n2|20|NULL\n3|30|NULL\n4|40|NULL\n5|50|NULL\n");
  EXPECT_EQ(AsOf("id, n, extra", "t", 1), "1|10|7\n2|20|7\n3|30|7\n4|40|7\n5|50|7\n");
  // Another value for rows to come changes none that are there.
  source_->Execute("ALTER TABLE t ALTER extra SET DEFAULT 9; INSERT INTO t VALUES (6, 'a6', 60)");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 1);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
}

// Columns of a dataset are told by their names: those of another source have no other identity.
TEST_F(ShapeCapture, ARenamedColumnIsANewOneAndTheOldOneKeepsItsPast) {
  source_->Execute("ALTER TABLE t RENAME n TO number");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 5);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(AsOf("id, number", "t", 0), "1|NULL\n2|NULL\n3|NULL\n4|NULL\n5|NULL\n");
  EXPECT_EQ(Rows("SELECT id, n, number, tx_from FROM public_history.t WHERE id = 3 "
                 "ORDER BY tx_from"),
            "3|30|NULL|1\n3|NULL|30|2\n");
  // Two that exchange their names keep them; their values change.
  source_->Execute("ALTER TABLE t ADD other int; UPDATE t SET other = -number");
  Captured({Snapshot("t")});
  source_->Execute("ALTER TABLE t RENAME number TO tmp; ALTER TABLE t RENAME other TO number; "
                   "ALTER TABLE t RENAME tmp TO other");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 5);
  EXPECT_EQ(Rows("SELECT id, a, number, other FROM public.t ORDER BY id"),
            Rows(*source_, "SELECT id, a, number, other FROM public.t ORDER BY id"));
  EXPECT_EQ(AsOf("id, number, other", "t", 2),
            "1|10|-10\n2|20|-20\n3|30|-30\n4|40|-40\n5|50|-50\n");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, ARenamedColumnOfTheKeyIsRefusedUnderBothNames) {
  source_->Execute("ALTER TABLE t RENAME id TO number");
  EXPECT_EQ(Refused({Snapshot("t")}).state(), base::kUndefinedColumn);
  const auto error = Refused({Snapshot("t", {"number"})});
  EXPECT_EQ(error.state(), base::kNotNullViolation);
  EXPECT_THAT(error.hint(), HasSubstr("former key"));
  EXPECT_EQ(Rows("SELECT id, a FROM public.t ORDER BY id"), "1|a1\n2|a2\n3|a3\n4|a4\n5|a5\n");
}

TEST_F(ShapeCapture, ADroppedColumnStaysInTheHistoryViewAndReAddedItStartsEmpty) {
  source_->Execute("UPDATE t SET n = 11 WHERE id = 1");
  Captured({Snapshot("t")});
  source_->Execute("ALTER TABLE t DROP n");
  EXPECT_EQ(Captured({Snapshot("t")}).outcome, MemberOutcome::kUnchanged);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(Rows("SELECT id, n, tx_from, tx_to FROM public_history.t WHERE id <= 2 ORDER BY 1, 3"),
            "1|10|1|2\n1|11|2|NULL\n2|20|1|NULL\n");
  source_->Execute("UPDATE t SET a = 'changed' WHERE id = 2; ALTER TABLE t ADD n int; "
                   "UPDATE t SET n = 99 WHERE id = 3");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 2);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(Rows("SELECT id, n, _n, tx_from, tx_to FROM public_history.t WHERE id IN (2, 3) "
                 "ORDER BY 1, 4"),
            "2|NULL|20|1|3\n2|NULL|NULL|3|NULL\n3|NULL|30|1|3\n3|99|NULL|3|NULL\n");
  EXPECT_EQ(AsOf("id, n", "t", 0), "1|NULL\n2|NULL\n3|NULL\n4|NULL\n5|NULL\n");
  EXPECT_EQ(AsOf("id, a", "t", 0), "1|a1\n2|a2\n3|a3\n4|a4\n5|a5\n");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, ARetypeThatChangesNoValueMakesNoVersion) {
  const auto places = Rows("SELECT id, _from FROM tidemark_current.d1 ORDER BY 1");
  for (const char* type : {"bigint", "numeric", "int", "text"}) {
    source_->Execute(std::string("ALTER TABLE t ALTER n TYPE ") + type + " USING n::" + type);
    EXPECT_EQ(Captured({Snapshot("t")}).outcome, MemberOutcome::kUnchanged) << type;
    EXPECT_EQ(Value("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = "
                    "'public.t'::regclass AND attname = 'n'"),
              std::string(type) == "int" ? "integer" : type);
    ExpectSame("SELECT * FROM public.t ORDER BY id");
  }
  EXPECT_EQ(Rows("SELECT id, _from FROM tidemark_current.d1 ORDER BY 1"), places);
  source_->Execute("UPDATE t SET n = 'x' WHERE id = 1");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 1);
  ExpectChainsHold();
}

TEST_F(ShapeCapture, ARetypeThatLosesValuesKeepsTheOldOnesUnderTheirOwnColumn) {
  source_->Execute("UPDATE t SET a = '007' WHERE id = 1; UPDATE t SET a = id::text WHERE id > 1");
  Captured({Snapshot("t")});
  source_->Execute("ALTER TABLE t ALTER a TYPE int USING a::int");
  Captured({Snapshot("t")});
  EXPECT_EQ(Rows("SELECT id, a FROM public.t ORDER BY id"),
            Rows(*source_, "SELECT id, a FROM public.t ORDER BY id"));
  EXPECT_EQ(Rows("SELECT id, a, _a FROM public_history.t WHERE tx_to = 3 ORDER BY id"),
            "1|NULL|007\n2|NULL|2\n3|NULL|3\n4|NULL|4\n5|NULL|5\n");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, AColumnThatMayBeNullFromNowOnIsFollowed) {
  source_->Execute("ALTER TABLE t ALTER a DROP NOT NULL; UPDATE t SET a = NULL WHERE id = 4");
  EXPECT_EQ(Captured({Snapshot("t")}).puts, 1);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, AnotherKeyIsFollowedWhenTheRowsAreUniqueInIt) {
  EXPECT_EQ(Captured({Snapshot("t", {"a"})}).outcome, MemberOutcome::kUnchanged);
  source_->Execute("ALTER TABLE t DROP CONSTRAINT t_pkey; UPDATE t SET id = id + 100 WHERE a = "
                   "'a1'");
  EXPECT_EQ(Captured({Snapshot("t", {"a"})}).puts, 1);
  EXPECT_EQ(Value("SELECT key_columns FROM tidemark.dataset"), "{a}");
  EXPECT_EQ(Rows("SELECT op FROM tidemark.diff_tx(NULL::public.t, 1, 2)"), "update\n");
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, AnotherKeyIsRefusedWhenTheKeptRowsAreNotUniqueInIt) {
  source_->Execute("UPDATE t SET n = 1 WHERE id < 3");
  Captured({Snapshot("t")});
  source_->Execute("UPDATE t SET n = id");
  const auto error = Refused({Snapshot("t", {"n"})});
  EXPECT_EQ(error.state(), base::kUniqueViolation);
  EXPECT_THAT(error.hint(), HasSubstr("former key"));
  Captured({Snapshot("t")});
  Captured({Snapshot("t", {"n"})});
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  ExpectChainsHold();
}

TEST_F(ShapeCapture, AMissingKeyColumnIsRefused) {
  const auto error = Refused({Snapshot("t", {"nothing"})});
  EXPECT_EQ(error.state(), base::kUndefinedColumn);
}

TEST_F(ShapeCapture, ColumnsWithOurNamesAreRefused) {
  source_->Execute("ALTER TABLE t ADD _from int");
  EXPECT_EQ(Refused({Snapshot("t")}).state(), base::kFeatureNotSupported);
  EXPECT_EQ(Value("SELECT count(*) FROM public.t"), "5");
}

TEST_F(ShapeCapture, AnswersOfThePastSurviveEveryChangeTogether) {
  const auto first = AsOf("id, a", "t", 0);
  source_->Execute("ALTER TABLE t DROP n; ALTER TABLE t ADD m bigint; ALTER TABLE t ALTER a TYPE "
                   "varchar(20); UPDATE t SET m = id, a = a || '!'; DELETE FROM t WHERE id = 5");
  Captured({Snapshot("t")});
  EXPECT_EQ(AsOf("id, a", "t", 0), first);
  ExpectSame("SELECT * FROM public.t ORDER BY id");
  EXPECT_EQ(Rows("SELECT id, n FROM tidemark.versions(NULL::public.t, 'system', 'all', NULL, NULL) "
                 "WHERE tx_to = 2 ORDER BY 1"),
            "1|10\n2|20\n3|30\n4|40\n5|50\n");
  ExpectChainsHold();
}

}  // namespace
}  // namespace tidemark::tests
