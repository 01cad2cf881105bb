// A capture of several datasets killed at every step, and one that is frozen while another takes
// over: nothing is half published, nothing stays behind, and the next capture is whole.
#include <csignal>
#include <thread>

#include "base/child_process.h"
#include "source/postgres/slot.h"
#include "tests/capture/capture_fixture.h"

extern char** environ;

namespace tidemark::tests {
namespace {

using base::ChildProcess;
using base::Deadline;

class KilledCapture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE a (id int PRIMARY KEY, n int, v text); INSERT INTO a SELECT i, i, "
        "repeat('x', 200) FROM generate_series(1, 60000) i; "
        "CREATE TABLE b (id int PRIMARY KEY, n int); INSERT INTO b SELECT i, i FROM "
        "generate_series(1, 100) i; "
        "CREATE TABLE log (id int PRIMARY KEY, n int); INSERT INTO log SELECT i, i FROM "
        "generate_series(1, 100) i");
  }

  ChildProcess Start(const std::string& kill_point = "") {
    ChildProcess::Options options{.command = {CAPTURER_BINARY, source_dsn_, store_dsn_},
                                  .dies_with_parent = true};
    options.command.insert(options.command.end(), members_.begin(), members_.end());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      options.environment.emplace_back(*variable);
    }
    if (!kill_point.empty()) options.environment.push_back("TIDEMARK_KILL_POINT=" + kill_point);
    return ChildProcess::Start(options);
  }
  bool Killed(const std::string& kill_point) {
    const auto ended = Start(kill_point).Wait(Deadline::After(60s));
    return ended && ended->signal == SIGKILL;
  }
  void ExpectWhole() {
    const auto ended = Start().Wait(Deadline::After(60s));
    ASSERT_TRUE(ended && ended->ok());
    for (const char* table : {"a", "b", "log"}) {
      ExpectSame(std::string("SELECT * FROM public.") + table + " ORDER BY id");
    }
    ExpectNothingLeftBehind();
    ExpectChainsHold();
  }
  void Change(int round) {
    const auto n = std::to_string(round);
    source_->Execute("UPDATE a SET n = n + 1 WHERE id % 1000 = " + n +
                     "; DELETE FROM a WHERE id % 777 = " + n +
                     "; UPDATE b SET n = n + 1 WHERE id % 3 = 0; "
                     "INSERT INTO log SELECT max(id) + 1, " + n + " FROM log");
  }
  std::string State() {
    return Rows("SELECT 'a', count(*), sum(n) FROM public.a UNION ALL "
                "SELECT 'b', count(*), sum(n) FROM public.b UNION ALL "
                "SELECT 'log', count(*), sum(n) FROM public.log ORDER BY 1");
  }

  std::vector<std::string> members_ = {"a", "b", "log:id"};
};

/// Table b comes through a slot that is drained.
class KilledDrain : public KilledCapture {
 protected:
  void SetUp() override {
    KilledCapture::SetUp();
    source_->Execute("CREATE PUBLICATION b FOR TABLE b");
    slot_ = "killed_" + source_->Value("SELECT current_database()");
    members_ = {"a", "@b/" + slot_, "log:id"};
  }
  void TearDown() override {
    source::DropSlot(*source_, slot_, Deadline::After(20s));
    KilledCapture::TearDown();
  }

  std::string slot_;
};

TEST_F(KilledCapture, InTheFirstCaptureLeavesNothingVisibleAndNothingBehind) {
  for (const char* point : {"stage.after_batch", "stage.after_batch:2", "stage.done",
                            "stage.done:2", "capture.member_read", "apply.done", "apply.done:3",
                            "capture.member_done:2", "publish.before_commit"}) {
    ASSERT_TRUE(Killed(point)) << point;
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "0") << point;
    EXPECT_EQ(Value("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
              "0")
        << point;
  }
  ExpectWhole();
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
}

TEST_F(KilledCapture, LaterLeavesThePreviousBasisVisibleAndNothingBehind) {
  ExpectWhole();
  int round = 0;
  for (const char* point :
       {"stage.after_batch", "stage.after_batch:3", "stage.done", "stage.done:3",
        "capture.member_read:2", "reduce.done", "reduce.done:2", "apply.done", "apply.done:2",
        "capture.member_done", "capture.member_done:3", "publish.before_commit"}) {
    const auto before = State();
    const auto bases = Value("SELECT count(*) FROM tidemark.basis");
    Change(++round);
    ASSERT_TRUE(Killed(point)) << point;
    EXPECT_EQ(State(), before) << point;
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), bases) << point;
  }
  ExpectWhole();
}

TEST_F(KilledCapture, AfterTheCommitThePublishStandsAndIsNotRepeated) {
  ExpectWhole();
  Change(1);
  ASSERT_TRUE(Killed("publish.after_commit"));
  for (const char* table : {"a", "b", "log"}) {
    ExpectSame(std::string("SELECT * FROM public.") + table + " ORDER BY id");
  }
  const auto tx = Value("SELECT max(tx) FROM tidemark.tx");
  ExpectWhole();
  EXPECT_EQ(Value("SELECT max(tx) FROM tidemark.tx"), tx);
}

TEST_F(KilledCapture, FrozenAndReplacedItPublishesNothingOfItsOwn) {
  ExpectWhole();
  Change(1);
  // Frozen with everything applied and nothing committed.
  source_->Execute("BEGIN; LOCK TABLE log");  // the third member waits here
  auto frozen = Start();
  const auto waiting = Deadline::After(30s);
  while (Value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname "
               "<> "
               "current_database() AND query LIKE '%log%'") == "0") {
    ASSERT_FALSE(waiting.passed());
    std::this_thread::sleep_for(20ms);
  }
  frozen.Signal(SIGSTOP);
  source_->Execute("ROLLBACK");
  store_->Execute(
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
      "database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  Change(2);
  ASSERT_NO_FATAL_FAILURE(ExpectWhole());
  const auto state = State();
  const auto bases = std::stoi(Value("SELECT count(*) FROM tidemark.basis"));
  frozen.Signal(SIGCONT);
  const auto ended = frozen.Wait(Deadline::After(60s));
  ASSERT_TRUE(ended);
  // What it read while it was frozen is gone; it has begun anew under a lease of its own.
  EXPECT_EQ(State(), state);
  EXPECT_LE(std::stoi(Value("SELECT count(*) FROM tidemark.basis")), bases + 1);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis_member WHERE basis > " +
                  std::to_string(bases) + " AND (puts > 0 OR deletions > 0)"),
            "0");
  ExpectNothingLeftBehind();
  ExpectChainsHold();
}

TEST_F(KilledDrain, InTheFirstCaptureLeavesNothingVisibleAndNothingBehind) {
  for (const char* point :
       {"copy.before_slot", "copy.slot_created", "copy.prepared", "copy.rows", "copy.copied",
        "copy.before_attach", "stage.done:2", "capture.member_read:2", "capture.member_done",
        "capture.member_done:3", "publish.before_commit"}) {
    ASSERT_TRUE(Killed(point)) << point;
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "0") << point;
    EXPECT_EQ(Value("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
              "0")
        << point;
  }
  ExpectWhole();
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
}

TEST_F(KilledDrain, LaterLeavesThePreviousBasisVisibleAndLosesNoCommit) {
  ExpectWhole();
  int round = 0;
  for (const char* point : {"drain.applied", "capture.member_done", "capture.member_done:3",
                            "apply.done:2", "publish.before_commit"}) {
    const auto before = State();
    const auto bases = Value("SELECT count(*) FROM tidemark.basis");
    Change(++round);
    ASSERT_TRUE(Killed(point)) << point;
    EXPECT_EQ(State(), before) << point;
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), bases) << point;
  }
  ExpectWhole();
  // Each of the five transactions that changed b is there, once.
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx t JOIN tidemark.journal j ON j.id = t.journal "
                  "WHERE j.name = 'shop'"),
            "6");
}

TEST_F(KilledDrain, AfterTheCommitNothingIsAppliedTwice) {
  ExpectWhole();
  Change(1);
  ASSERT_TRUE(Killed("publish.after_commit"));
  const auto versions = Value("SELECT count(*) FROM public_history.b");
  ExpectWhole();
  EXPECT_EQ(Value("SELECT count(*) FROM public_history.b"), versions);
}

}  // namespace
}  // namespace tidemark::tests
