// Several datasets in one capture: one basis or none, what failed, evidence, lease, lost lines.
#include "temporal/lease.h"
#include "temporal/status.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;

class ManyDatasets : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT i, i FROM "
        "generate_series(1, 100) i; "
        "CREATE TABLE b (id int PRIMARY KEY, n int); INSERT INTO b SELECT i, i FROM "
        "generate_series(1, 50) i; "
        "CREATE TABLE c (id int, n int); INSERT INTO c SELECT i, i FROM generate_series(1, 10) i");
  }
};

TEST_F(ManyDatasets, AreOneBasisWithAMemberEach) {
  const auto report = Capture({Snapshot("a"), Snapshot("b"), ByCursor("c", "id")});
  ASSERT_TRUE(report.basis);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis_journal"), "3");
  EXPECT_EQ(Value("SELECT count(DISTINCT accepted_at) FROM tidemark.basis_member"), "1");
  EXPECT_EQ(Rows("SELECT name, publication FROM tidemark.journal ORDER BY 1"),
            "public.a|NULL\npublic.b|NULL\npublic.c|NULL\n");
  source_->Execute("UPDATE b SET n = 0 WHERE id = 1");
  const auto next = Capture({Snapshot("a"), Snapshot("b"), ByCursor("c", "id")});
  EXPECT_EQ(next.members[0].outcome, MemberOutcome::kUnchanged);
  EXPECT_EQ(next.members[1].outcome, MemberOutcome::kPublished);
  EXPECT_EQ(next.members[2].outcome, MemberOutcome::kUnchanged);
  // What one journal does leaves the numbers of the others alone.
  EXPECT_EQ(Rows("SELECT tx_last FROM tidemark.resume ORDER BY journal"), "1\n2\n1\n");
  ExpectChainsHold();
}

TEST_F(ManyDatasets, AFailingMemberMeansNothingIsPublishedAndIsNamed) {
  source_->Execute("INSERT INTO c VALUES (1, 1)");
  const auto error = Refused({Snapshot("a"), Snapshot("c"), Snapshot("b")});
  EXPECT_EQ(error.state(), base::kUniqueViolation);
  ASSERT_FALSE(error.context().empty());
  EXPECT_THAT(error.context().front(), HasSubstr("public.c"));
  EXPECT_EQ(Value("SELECT to_regclass('public.a') IS NULL"), "t");
  EXPECT_EQ(Rows("SELECT dataset, sqlstate FROM tidemark.capture_failure"), "public.c|23505\n");
  EXPECT_THAT(temporal::LoadStatus(*store_), HasSubstr("23505"));
  // The same when it fails only at the end.
  source_->Execute("DELETE FROM c WHERE ctid = '(0,11)'");
  Captured({Snapshot("a"), Snapshot("c")});
  source_->Execute("INSERT INTO c VALUES (1, 1); UPDATE a SET n = -1");
  Refused({Snapshot("a"), Snapshot("c")});
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "0");
  EXPECT_THAT(temporal::LoadStatus(*store_), HasSubstr("23505"));
  source_->Execute("DELETE FROM c WHERE ctid = '(0,12)'; DELETE FROM c WHERE id = 1");
  Captured({Snapshot("a"), Snapshot("c")});
  EXPECT_THAT(temporal::LoadStatus(*store_), ::testing::Not(HasSubstr("23505")));
}

TEST_F(ManyDatasets, KeepGoingPublishesTheOthersAndSaysWhatIsMissing) {
  Captured({Snapshot("a"), Snapshot("b"), Snapshot("c")});
  source_->Execute("INSERT INTO c VALUES (1, 1); UPDATE a SET n = -1; DROP TABLE b");
  const auto report = Capture({Snapshot("c"), Snapshot("b"), Snapshot("a")}, true);
  ASSERT_TRUE(report.basis);
  EXPECT_EQ(report.members[0].outcome, MemberOutcome::kFailed);
  EXPECT_EQ(report.members[1].outcome, MemberOutcome::kFailed);
  EXPECT_EQ(report.members[2].outcome, MemberOutcome::kPublished);
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "100");
  EXPECT_EQ(Value("SELECT count(*) FROM public.c"), "10");
  const auto evidence = temporal::LoadEvidence(*store_, report.basis->number);
  ASSERT_TRUE(evidence);
  EXPECT_THAT(*evidence, HasSubstr("\"failures\": [{"));
  EXPECT_THAT(*evidence, HasSubstr("public.b"));
  ExpectNothingLeftBehind();
  ExpectChainsHold();
}

TEST_F(ManyDatasets, EvidenceKeepsFiveFactsApartAndReadersSeeThem) {
  Captured({Snapshot("a"), ByCursor("c", "id")});
  store_->Execute("SET ROLE tidemark_reader");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis_member WHERE source_position IS NOT NULL "
                  "AND "
                  "\"position\" ->> 'system_identifier' <> '' AND \"position\" ->> 'snapshot' <> "
                  "'' "
                  "AND extracted_from <= extracted_to AND extracted_to <= accepted_at AND "
                  "length(version) = 32 AND tx = 1"),
            "2");
  EXPECT_EQ(Value("SELECT \"position\" -> 'resume' ->> 'cursor' FROM tidemark.basis_member "
                  "WHERE dataset = 2"),
            "10");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.capture_failure"), "0");
  EXPECT_EQ(Value("SELECT has_schema_privilege('tidemark_stage', 'USAGE')"), "f");
  store_->Execute("RESET ROLE");
}

TEST_F(ManyDatasets, TwoDatasetsCannotHaveOnePlace) {
  Captured({Snapshot("a")});
  auto other = Snapshot("b");
  other.in_store = {"public", "a"};
  EXPECT_EQ(Refused({other}).state(), base::kDuplicateObject);
  store_->Execute("CREATE TABLE public.mine (id int)");
  other.in_store = {"public", "mine"};
  EXPECT_EQ(Refused({other}).state(), base::kDuplicateObject);
  other.in_store = {"tidemark_x", "b"};
  EXPECT_EQ(Refused({other}).state(), base::kInvalidName);
  other.in_store = {"elsewhere", "bee"};
  Captured({other});
  EXPECT_EQ(Value("SELECT count(*) FROM elsewhere.bee"), "50");
}

TEST_F(ManyDatasets, AHolderThatWasReplacedPublishesNothing) {
  Captured({Snapshot("a"), Snapshot("b")});
  source_->Execute("UPDATE a SET n = -1");
  progressed_ = [&](const auto&, int64_t) {
    // Another process takes over while this one reads.
    store_->Execute("UPDATE tidemark.lease SET fence = fence + 1");
  };
  try {
    Capture({Snapshot("a"), Snapshot("b")});
    FAIL() << "published";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kNotInPrerequisiteState);
  }
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "0");
  progressed_ = {};
  Captured({Snapshot("a"), Snapshot("b")});
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "100");
  ExpectNothingLeftBehind();
}

TEST_F(ManyDatasets, ALostSourceLineIsTriedAgain) {
  source_->Execute("CREATE TABLE large (id int PRIMARY KEY, v text); INSERT INTO large SELECT i, "
                   "repeat('x', 500) FROM generate_series(1, 60000) i");
  int cut = 0;
  progressed_ = [&](const capture::PlannedDataset& planned, int64_t) {
    if (planned.name != "public.large" || cut++ > 0) return;
    source_->Execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                     "current_database() AND pid <> pg_backend_pid()");
  };
  Captured({Snapshot("a"), Snapshot("large")});
  EXPECT_GT(cut, 1);
  EXPECT_EQ(Value("SELECT count(*) FROM public.large"), "60000");
  ExpectNothingLeftBehind();
}

TEST_F(ManyDatasets, ALostStoreLineBeginsTheCaptureAgain) {
  Captured({Snapshot("a")});
  source_->Execute("UPDATE a SET n = -1");
  int cut = 0;
  progressed_ = [&](const auto&, int64_t) {
    if (cut++ > 0) return;
    store_->Execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                    "AND "
                    "pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE "
                    "datname = current_database())");
  };
  Captured({Snapshot("a")});
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "100");
  ExpectNothingLeftBehind();
}

TEST_F(ManyDatasets, AStoppedCapturePublishesNothingAndLeavesNothing) {
  Captured({Snapshot("a")});
  source_->Execute("UPDATE a SET n = -1");
  std::stop_source stop;
  try {
    capture::RunCapture({.store_dsn = store_dsn_,
                         .datasets = {Snapshot("a"), Snapshot("b")},
                         .keep_going = false,
                         .history = {},
                         .progressed = [&](const auto&, int64_t) { stop.request_stop(); }},
                        stop.get_token());
    FAIL() << "published";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kQueryCanceled);
  }
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
  EXPECT_EQ(Value("SELECT count(*) FROM public.a WHERE n = -1"), "0");
  ExpectNothingLeftBehind();
}

TEST_F(ManyDatasets, AClockThatStepsBackChangesNoAnswerAndNoOrder) {
  Captured({Snapshot("a")});
  source_->Execute("UPDATE a SET n = -1 WHERE id = 1");
  Captured({Snapshot("a")});
  // As if the clocks of the store and of this machine had been an hour ahead so far.
  store_->Execute(R"sql(
UPDATE tidemark.basis SET system_time = system_time + interval '1 hour';
UPDATE tidemark.basis_journal SET system_time = system_time + interval '1 hour';
UPDATE tidemark.basis_member SET accepted_at = accepted_at + interval '1 hour',
  extracted_from = extracted_from + interval '1 hour',
  extracted_to = extracted_to + interval '1 hour';
UPDATE tidemark.tx SET source_time = source_time + interval '1 hour';
UPDATE tidemark.resume SET received_time = received_time + interval '1 hour';
SELECT setval('tidemark.published_time', last_value + 3600000000) FROM tidemark.published_time
)sql");
  instants_ = {Value("SELECT system_time FROM tidemark.basis WHERE number = 1"),
               Value("SELECT system_time FROM tidemark.basis WHERE number = 2")};
  const auto first = AsOf("id, n", "a", 0), second = AsOf("id, n", "a", 1);
  source_->Execute("UPDATE a SET n = -2 WHERE id = 1; UPDATE b SET n = -2 WHERE id = 1");
  Captured({Snapshot("a"), Snapshot("b")});
  source_->Execute("UPDATE a SET n = -3 WHERE id = 1");
  Captured({Snapshot("a"), Snapshot("b")});

  EXPECT_EQ(Rows("SELECT system_time - lag(system_time) OVER (ORDER BY number) > '0' FROM "
                 "tidemark.basis ORDER BY number OFFSET 1"),
            "t\nt\nt\n");
  EXPECT_EQ(Value("SELECT max(system_time) > clock_timestamp() + interval '50 minutes' FROM "
                  "tidemark.basis"),
            "t");
  EXPECT_EQ(Rows("SELECT source_time >= lag(source_time) OVER (ORDER BY tx) FROM tidemark.tx WHERE "
                 "journal = 1 ORDER BY tx OFFSET 1"),
            "t\nt\nt\n");
  EXPECT_EQ(AsOf("id, n", "a", 0), first);
  EXPECT_EQ(AsOf("id, n", "a", 1), second);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(Value("SELECT n FROM tidemark.as_of(NULL::public.a, '" + instants_[i] +
                    "') WHERE id = 1"),
              "-" + std::to_string(i));
  }
  // When it was read is told as the clock told it.
  EXPECT_EQ(Value("SELECT extracted_to < accepted_at - interval '50 minutes' FROM "
                  "tidemark.basis_member WHERE dataset = 1 ORDER BY basis DESC LIMIT 1"),
            "t");
  ExpectChainsHold();
}

TEST_F(ManyDatasets, AChainThatWasTamperedWithIsFoundAtItsFirstBreak) {
  Captured({Snapshot("a")});
  for (int i = 0; i < 3; ++i) {
    source_->Execute("UPDATE a SET n = n + 1 WHERE id <= 3");
    Captured({Snapshot("a")});
  }
  const auto dataset = temporal::LoadVersionedDatasets(*store_).at(0);
  EXPECT_EQ(temporal::CheckChain(*store_, dataset).versions, 4);
  const auto broken_at = [&](const std::string& tamper) {
    store_->Execute(tamper);
    const auto check = temporal::CheckChain(*store_, dataset);
    return check.breaks.empty() ? 0 : check.breaks.front().tx;
  };
  EXPECT_EQ(broken_at("UPDATE tidemark_history.d1 SET n = 77 WHERE id = 2 AND _from = 3"), 3);
  EXPECT_EQ(broken_at("UPDATE tidemark_history.d1 SET n = 4 WHERE id = 2 AND _from = 3"), 0);
  EXPECT_EQ(broken_at("UPDATE tidemark_history.d1 SET _from = 2 WHERE id = 3 AND _from = 3"), 2);
  EXPECT_EQ(broken_at("UPDATE tidemark_history.d1 SET _from = 3 WHERE id = 3 AND _to = 4"), 0);
  EXPECT_EQ(broken_at("UPDATE tidemark_current.d1 SET n = 5 WHERE id = 50"), 1);
}

}  // namespace
}  // namespace tidemark::tests
