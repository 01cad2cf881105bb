#include "tests/oracle/promises.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::oracle {
namespace {

using base::Lsn;
using Kind = Promises::Kind;
using ::testing::HasSubstr;

const Digest kOne{1, 11}, kTwo{2, 22}, kThree{3, 33};

Commit CommitOf(uint64_t end, Change change) {
  change.tables = {"t"};
  return {.xid = 1, .end = Lsn(end), .committed_at = "", .changes = {std::move(change)}};
}

Change Rewrite(const std::string& types) {
  Change change;
  change.kind = Change::Kind::kRewrite;
  change.types = types;
  return change;
}

Change Mark(Change::Kind kind) {
  Change change;
  change.kind = kind;
  return change;
}

TEST(Promises, NothingIsPromisedFromARewriteToTheReadingThatShowsIt) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 5, .last_tx = 6, .at = Lsn(400), .asked_after = Lsn(100),
                         .asked_after_tx = 2}});
  promises.Note(CommitOf(150, {}), kOne);
  EXPECT_EQ(promises.At(Lsn(150)), Kind::kExact);  // though its reading was asked for before
  promises.Note(CommitOf(200, Rewrite("23")), kTwo);
  EXPECT_EQ(promises.At(Lsn(200)), Kind::kOpen);
  promises.Note(CommitOf(300, {}), kThree);
  EXPECT_EQ(promises.Due(Lsn(399)), nullptr);
  ASSERT_NE(promises.Due(Lsn(400)), nullptr);
  EXPECT_EQ(promises.Settle(kTwo), "");
  EXPECT_FALSE(promises.open());
  promises.Note(CommitOf(500, {}), kOne);
  EXPECT_EQ(promises.At(Lsn(500)), Kind::kExact);
  EXPECT_THAT(promises.spans(), testing::ElementsAre(testing::Pair(Lsn(200), Lsn(400))));
}

TEST(Promises, AReadingThatIsOlderThanTheNewestRewriteLeavesItOpen) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 5, .last_tx = 6, .at = Lsn(400)}});
  promises.Note(CommitOf(200, Rewrite("23")), kTwo);
  promises.Note(CommitOf(300, Rewrite("20")), kThree);
  EXPECT_EQ(promises.Settle(kTwo), "");
  EXPECT_TRUE(promises.open());
}

TEST(Promises, AStateThatTheSourceNeverHadIsFound) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 5, .last_tx = 6, .at = Lsn(400)}});
  promises.Note(CommitOf(100, {}), kThree);  // before the rewrite
  promises.Note(CommitOf(200, Rewrite("23")), kTwo);
  EXPECT_THAT(promises.Settle(kThree), HasSubstr("no state that the source had"));
}

TEST(Promises, AReadingWithoutAReasonIsFound) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 5, .last_tx = 6, .at = Lsn(400)}});
  promises.Note(CommitOf(200, {}), kTwo);
  EXPECT_THAT(promises.Settle(kTwo), HasSubstr("had no reason to"));
}

TEST(Promises, ColumnsThatChangeAreExactUnlessAReadingIsAskedFor) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 5, .last_tx = 6, .at = Lsn(400), .asked_after = Lsn(300)}});
  promises.Note(CommitOf(200, Mark(Change::Kind::kReshape)), kOne);
  EXPECT_EQ(promises.At(Lsn(200)), Kind::kExact);
  promises.Note(CommitOf(350, {}), kTwo);
  EXPECT_EQ(promises.At(Lsn(350)), Kind::kOpen);
}

TEST(Promises, ATableThatComesLaterIsAbsentUntilItIsShownWhole) {
  Promises promises("t", /*absent=*/true);
  promises.SetReadings({{.first_tx = 5, .last_tx = 5, .at = Lsn(400)}});
  promises.Note(CommitOf(100, {}), kOne);
  promises.Note(CommitOf(200, Mark(Change::Kind::kJoin)), kTwo);
  EXPECT_EQ(promises.At(Lsn(200)), Kind::kAbsent);
  EXPECT_EQ(promises.Settle(kTwo), "");
  EXPECT_EQ(promises.begins(), Lsn(400));
  promises.Note(CommitOf(500, {}), kThree);
  EXPECT_EQ(promises.At(Lsn(500)), Kind::kExact);
}

TEST(Promises, ATableStandsStillFromARewriteThatItsTypesTellOf) {
  Promises promises("t", /*absent=*/false);
  promises.SetReadings({{.first_tx = 1, .last_tx = 2, .at = Lsn(150), .asked_after = Lsn(120)},
                        {.first_tx = 5, .last_tx = 6, .at = Lsn(400), .asked_after = Lsn(350)}});
  promises.Note(CommitOf(100, Rewrite("23")), kOne);
  EXPECT_EQ(promises.Settle(kOne), "");
  promises.Note(CommitOf(200, Rewrite("23")), kTwo);
  EXPECT_EQ(promises.StillFrom(), Lsn(350));
  promises.Note(CommitOf(300, Rewrite("20")), kTwo);
  EXPECT_EQ(promises.StillFrom(), Lsn(300));
  EXPECT_EQ(promises.PreviousTx(), 2);
}

}  // namespace
}  // namespace tidemark::oracle
