// Occurrences, from the queue in the store to captures: what asks while a capture runs is one more
// capture, nothing that was accepted is lost, and nobody captures for a dead process twice.
#include <atomic>
#include <thread>

#include "capture/cadenced_captures.h"
#include "temporal/occurrence.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using temporal::Acceptance;
using temporal::AcceptOccurrence;

class Occurrences : public CaptureFixture {
 protected:
  // 2026-11-30 09:58:30 UTC.
  static constexpr int64_t kBegin = (9830LL * 86'400 + 9 * 3600 + 58 * 60 + 30) * 1'000'000;

  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a VALUES (0, 0);"
        "CREATE TABLE b (id int PRIMARY KEY, n int); INSERT INTO b VALUES (0, 0)");
  }
  void TearDown() override {
    Stop();
    CaptureFixture::TearDown();
  }

  /// A capturing process's loop, as a thread.
  void Start(std::vector<capture::CadencedDataset> datasets) {
    thread_ = std::jthread([this, datasets = std::move(datasets)](std::stop_token stop) {
      capture::RunCadences({.store_dsn = store_dsn_,
                            .datasets = datasets,
                            .now = [this] { return base::Timestamp(now_.load()); }},
                           stop);
    });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }
  /// Asks for a capture of public.<relation>. Its message's id is new.
  void Ask(const std::string& relation) {
    const auto receipt = AcceptOccurrence(
        *store_, {.dataset = "public." + relation, .message_id = "m" + std::to_string(++messages_)},
        100'000);
    ASSERT_EQ(receipt.acceptance, Acceptance::kAccepted);
  }
  void Await(const std::string& sql, const std::string& value) {
    const auto deadline = base::Deadline::After(60s);
    while (!deadline.passed() && Value(sql) != value) std::this_thread::sleep_for(5ms);
    ASSERT_EQ(Value(sql), value) << sql << "\n"
                                 << Rows(
                                        "SELECT dataset, message_id, state, attempts, sqlstate, "
                                        "error FROM tidemark.occurrence LIMIT 20");
  }
  void AwaitAll(const std::string& state) {
    Await("SELECT count(*) FROM tidemark.occurrence WHERE state <> '" + state + "'", "0");
  }

  std::atomic<int64_t> now_ = kBegin;
  int messages_ = 0;
  std::jthread thread_;
};

constexpr const char* kCaptures = "SELECT count(*) FROM tidemark.capture";

TEST_F(Occurrences, ADatasetWithoutCadenceIsCapturedWhenOneAsks) {
  Start({{Snapshot("a"), std::nullopt}, {Snapshot("b"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.dataset"), "1") << "nobody asked for the other";
  EXPECT_EQ(Value("SELECT o.capture = b.capture FROM tidemark.occurrence o, tidemark.basis b"),
            "t");
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "2") << "unchanged is an answer, too";
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx"), "1");
}

TEST_F(Occurrences, ABurstWhileACaptureRunsIsExactlyOneMore) {
  Start({{Snapshot("a"), std::nullopt}});
  source_->Execute("BEGIN; LOCK TABLE a");
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT count(*) FROM tidemark.occurrence WHERE state = 'running'", "1"));
  ASSERT_NO_FATAL_FAILURE(Await(kCaptures, "1"));
  for (int i = 0; i < 50; ++i) ASSERT_NO_FATAL_FAILURE(Ask("a"));
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.occurrence WHERE state = 'queued'"), "50");
  source_->Execute("COMMIT");
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value(kCaptures), "2");
  EXPECT_EQ(
      Value("SELECT count(DISTINCT capture) FROM tidemark.occurrence WHERE message_id <> 'm1'"),
      "1");
}

TEST_F(Occurrences, TheLastChangeIsAlwaysCaptured) {
  Start({{Snapshot("a"), std::nullopt}});
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 40; ++i) {
      source_->Execute("UPDATE a SET n = n + 1");
      ASSERT_NO_FATAL_FAILURE(Ask("a"));
    }
    ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
    ExpectSame("SELECT * FROM public.a");
  }
  EXPECT_LT(std::stoi(Value(kCaptures)), 200) << "bursts coalesce";
  ExpectChainsHold();
}

TEST_F(Occurrences, AFailureOfOneDoesNotHoldBackAnotherAndStaysToBeSeen) {
  source_->Execute("ALTER TABLE a RENAME TO a_gone");
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(Ask("b"));
  Start({{Snapshot("a"), std::nullopt}, {Snapshot("b"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT state FROM tidemark.occurrence WHERE dataset = 'public.b'", "done"));
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT state FROM tidemark.occurrence WHERE dataset = 'public.a'", "failed"));
  EXPECT_EQ(Value("SELECT sqlstate FROM tidemark.occurrence WHERE dataset = 'public.a'"), "42P01");
  source_->Execute("ALTER TABLE a_gone RENAME TO a");
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT state FROM tidemark.occurrence WHERE message_id = 'm3'", "done"));
}

TEST_F(Occurrences, WhatMayPassByItselfIsTriedUntilItHasPassed) {
  auto dataset = Snapshot("a");
  std::atomic<int> refusals = 2;
  dataset.open = [open = dataset.open, &refusals] {
    if (refusals-- > 0) throw base::Error(base::kTooManyConnections, "too many connections");
    return open();
  };
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  Start({{dataset, std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value("SELECT attempts FROM tidemark.occurrence"), "3");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.occurrence WHERE error IS NULL"), "1");
}

TEST_F(Occurrences, WhatADeadProcessClaimedIsCapturedAndWhatALivingOneClaimedIsNot) {
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(Ask("b"));
  std::optional other(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  const auto claims = temporal::ClaimOccurrences(*other, {"public.a", "public.none"});
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].occurrences, 1);
  Start({{Snapshot("a"), std::nullopt}, {Snapshot("b"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT state FROM tidemark.occurrence WHERE dataset = 'public.b'", "done"));
  // By now the loop has looked at both, and will look again.
  ASSERT_NO_FATAL_FAILURE(Ask("b"));
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT count(*) FROM tidemark.occurrence WHERE state = 'done'", "2"));
  EXPECT_EQ(Value("SELECT state FROM tidemark.occurrence WHERE dataset = 'public.a'"), "running");
  other.reset();
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value("SELECT attempts FROM tidemark.occurrence WHERE dataset = 'public.a'"), "2");
}

TEST_F(Occurrences, AFrozenProcessSettlesNothingThatAnotherHasClaimedSince) {
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  std::optional frozen(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  const auto old = temporal::ClaimOccurrences(*frozen, {"public.a"}).at(0);
  frozen.reset();  // its session is gone, it does not know yet
  ASSERT_NO_FATAL_FAILURE(
      Await("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
            "database = (SELECT oid FROM pg_database WHERE datname = "
            "current_database())",
            "0"));
  auto next = temporal::OpenStore(store_dsn_, base::Deadline::After(30s));
  const auto claim = temporal::ClaimOccurrences(next, {"public.a"}).at(0);
  auto woken = temporal::OpenStore(store_dsn_, base::Deadline::After(30s));
  temporal::SettleDone(woken, old, 1);
  EXPECT_EQ(Value("SELECT state FROM tidemark.occurrence"), "running");
  temporal::SettleDone(next, claim, 2);
  EXPECT_EQ(Value("SELECT state || capture FROM tidemark.occurrence"), "done2");
}

TEST_F(Occurrences, ACaptureByCadenceAnswersThemToo) {
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  store_->Execute("UPDATE tidemark.occurrence SET due_at = now() + interval '1 day'");
  Start({{Snapshot("a"), capture::Cadence::Parse("* * * * *")}});
  // When it is due must have been settled before the clock goes on.
  std::this_thread::sleep_for(700ms);
  EXPECT_EQ(Value(kCaptures), "0") << "neither is due yet";
  now_ += 60'000'000;
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  EXPECT_EQ(Value(kCaptures), "1");
}

TEST_F(Occurrences, WhenItIsStoppedWhatItHadClaimedIsQueuedAgain) {
  source_->Execute("BEGIN; LOCK TABLE a");
  Start({{Snapshot("a"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(Await(kCaptures, "1"));
  Stop();
  EXPECT_EQ(Value("SELECT state FROM tidemark.occurrence"), "queued");
  source_->Execute("COMMIT");
  Start({{Snapshot("a"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  ExpectSame("SELECT * FROM public.a");
}

TEST_F(Occurrences, TheQueueIsReadAgainWhenTheStoreComesBack) {
  Start({{Snapshot("a"), std::nullopt}});
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
  store_->Execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND pid <> pg_backend_pid()");
  ASSERT_NO_FATAL_FAILURE(Ask("a"));
  ASSERT_NO_FATAL_FAILURE(AwaitAll("done"));
}

}  // namespace
}  // namespace tidemark::tests
