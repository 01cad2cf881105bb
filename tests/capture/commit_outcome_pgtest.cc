// The line to the store breaks at the COMMIT of a publish, so that nobody has told whether it was
// carried out: the capture asks, and neither doubles nor loses it.
#include <fmt/format.h>

#include "tests/capture/capture_fixture.h"
#include "tests/capture/commit_relay.h"

namespace tidemark::tests {
namespace {

class CommitOutcome : public CaptureFixture, public testing::WithParamInterface<CutAt> {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT i, i FROM "
        "generate_series(1, 500) i; CREATE TABLE log (id int PRIMARY KEY, what text); "
        "INSERT INTO log SELECT i, 'line ' || i FROM generate_series(1, 300) i");
  }
  // One capture of both through a relay that cuts it off once.
  capture::CaptureReport CapturedThroughRelay() {
    auto& cluster = Cluster::Shared();
    const auto database = store_->Value("SELECT current_database()");
    CommitRelay relay(fmt::format("{}/.s.PGSQL.{}", cluster.host(), cluster.port()), GetParam());
    const auto direct = std::exchange(
        store_dsn_, fmt::format("host=127.0.0.1 port={} user=postgres dbname={} sslmode=disable "
                                "gssencmode=disable",
                                relay.port(), database));
    const auto report = Capture({Snapshot("a"), ByCursor("log", "id")});
    EXPECT_TRUE(relay.has_cut());
    store_dsn_ = direct;
    EXPECT_TRUE(report.basis);
    EXPECT_FALSE(report.Failure());
    return report;
  }
  void ExpectAll() {
    ExpectSame("SELECT * FROM public.a ORDER BY id");
    ExpectSame("SELECT * FROM public.log ORDER BY id");
    ExpectNothingLeftBehind();
    ExpectChainsHold();
  }
};

TEST_P(CommitOutcome, OfAFirstCaptureIsAskedFor) {
  const auto report = CapturedThroughRelay();
  ExpectAll();
  EXPECT_EQ(Rows("SELECT number FROM tidemark.basis"), std::to_string(report.basis->number) + "\n");
  EXPECT_EQ(Rows("SELECT puts FROM tidemark.basis_member ORDER BY dataset"), "500\n300\n");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.capture WHERE state = 'published'"), "1");
}

TEST_P(CommitOutcome, OfALaterCaptureIsAskedForAndItsChangesAreThereOnce) {
  Captured({Snapshot("a"), ByCursor("log", "id")});
  source_->Execute(
      "UPDATE a SET n = -n WHERE id <= 50; DELETE FROM a WHERE id > 490; "
      "INSERT INTO log SELECT i, 'line ' || i FROM generate_series(301, 350) i");
  const auto report = CapturedThroughRelay();
  ExpectAll();
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "2");
  EXPECT_EQ(Value("SELECT max(number) FROM tidemark.basis"), std::to_string(report.basis->number));
  EXPECT_EQ(Rows("SELECT puts, deletions FROM tidemark.basis_member WHERE basis > 1 "
                 "ORDER BY dataset"),
            "50|10\n50|0\n");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_history.d1"), "60");
  EXPECT_EQ(Value("SELECT count(*) FROM public_history.log"), "350");
  // Nothing is left to be done.
  EXPECT_EQ(Captured({Snapshot("a"), ByCursor("log", "id")}).outcome,
            capture::MemberOutcome::kUnchanged);
}

INSTANTIATE_TEST_SUITE_P(CutOff, CommitOutcome,
                         testing::Values(CutAt::kBeforeCommit, CutAt::kAfterCommit),
                         [](const auto& cut) {
                           return cut.param == CutAt::kBeforeCommit ? "BeforeTheStoreSawIt"
                                                                    : "WhenItWasDone";
                         });

}  // namespace
}  // namespace tidemark::tests
