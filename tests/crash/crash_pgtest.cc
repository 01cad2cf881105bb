// The capture killed at every kill point and at random, and its servers crashed under it, while the
// workload goes on. Whatever happens, the store must hold every commit of the source exactly once,
// and no answer that was given may change.
//   TIDEMARK_CRASH_ROUNDS   random kills, default 6; crashes of each server, a third of it
//   TIDEMARK_CRASH_SEED     default 1
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "base/error.h"
#include "source/postgres/slot.h"
#include "tests/cluster.h"
#include "tests/crash/acknowledgement_watch.h"
#include "tests/crash/follower_process.h"
#include "tests/immutability/instant_readers.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/sum_readers.h"
#include "tests/oracle/witness.h"
#include "tests/oracle/workload.h"

namespace tidemark::crash {
namespace {

using namespace std::chrono_literals;
using base::Deadline;
using base::Lsn;

int Setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

tests::Cluster& SourceCluster() {
  static tests::Cluster cluster({}, /*durable=*/true);
  return cluster;
}
tests::Cluster& StoreCluster() {
  static tests::Cluster cluster({}, /*durable=*/true);
  return cluster;
}

class Crash : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    name_ = fmt::format("crash{}", ++number);
    source_dsn_ = SourceCluster().CreateDatabase(name_);
    store_dsn_ = StoreCluster().CreateDatabase(name_);
    source_.emplace(SourceCluster().Connect(name_));
    witness_.emplace(source_dsn_, "witness_" + name_);
    source_->Execute(oracle::SchemaSql());
    follower_.emplace(name_, source_dsn_, store_dsn_);
    comparison_.emplace(store_dsn_);
    watch_.emplace(source_dsn_, store_dsn_, slot());
  }
  void TearDown() override {
    if (HasFailure()) {
      const auto log = follower_->Log();
      std::cout << log.substr(log.size() > 4000 ? log.size() - 4000 : 0) << "\n";
    }
    workload_.reset();
    sums_.reset();
    instants_.reset();
    EXPECT_EQ(watch_->Stop(), "");
    follower_.reset();
    witness_.reset();
    source::DropSlot(Source(), slot(), Deadline::After(20s));
  }

  std::string slot() const { return "tidemark_" + name_; }
  // A line broken by a crash of the server shows only when it is used.
  pg::Connection& Open(std::optional<pg::Connection>& line, tests::Cluster& cluster) {
    try {
      if (line && !line->InTransaction()) line->Execute("SELECT 1");
    } catch (const base::Error&) {
      line.reset();
    }
    if (!line) line.emplace(cluster.Connect(name_));
    return *line;
  }
  pg::Connection& Source() { return Open(source_, SourceCluster()); }
  pg::Connection& Store() { return Open(store_, StoreCluster()); }
  void StartWorkload(int sessions = 3, int pause_us_max = 60'000) {
    workload_.emplace(oracle::WorkloadOptions{
        .dsn = source_dsn_,
        .seed = static_cast<uint64_t>(Setting("TIDEMARK_CRASH_SEED", 1)),
        .sessions = sessions,
        .large_every = 40,
        .pause_us_max = pause_us_max});
  }
  void StartReaders() {
    sums_.emplace(store_dsn_, 1, 1);
    instants_.emplace(store_dsn_, std::vector<std::string>{"items", "account_b"}, 1, 2);
  }
  // Everything committed so far, received by the store; what the witness saw meanwhile.
  void CatchUp() {
    const Lsn upto = witness_->Absorb();
    ASSERT_TRUE(oracle::WaitReceived(store_dsn_, upto, Deadline::After(60s)))
        << "not received up to " << upto.ToString();
  }
  void CatchUpAndCompare() {
    ASSERT_NO_FATAL_FAILURE(CatchUp());
    ASSERT_TRUE(comparison_->Advance(witness_->commits()));
  }
  // The end of a test: from here on all is quiet.
  void EndAndCompareAll() {
    if (workload_) {
      workload_->Stop();
      std::cout << workload_->committed() << " transactions done, " << workload_->failed()
                << " failed\n";
    }
    ASSERT_NO_FATAL_FAILURE(CatchUp());
    if (sums_) {
      for (const auto& line : sums_->Stop()) ADD_FAILURE() << line;
    }
    if (instants_) {
      for (const auto& line : instants_->Stop()) ADD_FAILURE() << line;
      for (const auto& line : instants_->AskAgain(Store(), 1500)) ADD_FAILURE() << line;
    }
    // From the first commit to the last, whatever was compared on the way.
    oracle::Comparison all(store_dsn_);
    ASSERT_TRUE(all.Advance(witness_->commits()));
    EXPECT_TRUE(all.CompareHistory());
    EXPECT_TRUE(all.ComparePresent(Source()));
    std::cout << all.compared() << " commits compared\n";
    EXPECT_GT(watch_->looks(), 0);
    EXPECT_TRUE(follower_->Stop()) << follower_->Log();
  }
  void ExpectNothingLeftBehind() {
    EXPECT_EQ(Source().Value("SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM "
                             "pg_replication_slots WHERE database = current_database()"),
              fmt::format("{} witness_{}", slot(), name_));
    EXPECT_EQ(Store().Value("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = "
                            "c.relnamespace WHERE n.nspname = 'tidemark_current' AND c.relkind = "
                            "'r' AND c.relname NOT IN (SELECT 'd' || id FROM tidemark.dataset)"),
              "0");
    EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.dataset WHERE tx_first IS NULL"), "0");
    EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.dataset"),
              std::to_string(oracle::PublishedTables().size()));
    EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.capture WHERE state = 'running'"), "0");
    EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.capture WHERE state = 'published'"), "1");
    EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.basis WHERE number IN (SELECT basis "
                            "FROM tidemark.basis_journal WHERE tx_last = 1)"),
              "1");
  }
  bool NothingPublished() {
    return !Store().Execute("SELECT to_regclass('tidemark.basis') IS NOT NULL").boolean(0, 0) ||
           Store().Value("SELECT (SELECT count(*) FROM tidemark.basis) + (SELECT count(*) FROM "
                         "pg_class WHERE relnamespace = 'public'::regnamespace)") == "0";
  }
  bool WaitFirstBasis() {
    if (oracle::WaitReceived(store_dsn_, Lsn(1), Deadline::After(5s))) return true;
    if (workload_) workload_->Calm(true);
    const bool there = oracle::WaitReceived(store_dsn_, Lsn(1), Deadline::After(60s));
    if (workload_) workload_->Calm(false);
    return there;
  }

  std::string name_, source_dsn_, store_dsn_;
  std::optional<pg::Connection> source_, store_;
  std::optional<oracle::Witness> witness_;
  std::optional<FollowerProcess> follower_;
  std::optional<oracle::Comparison> comparison_;
  std::optional<AcknowledgementWatch> watch_;
  std::optional<oracle::Workload> workload_;
  std::optional<oracle::SumReaders> sums_;
  std::optional<immutability::InstantReaders> instants_;
};

TEST_F(Crash, KilledDuringTheFirstCopyItStartsAgainAndLeavesNothingBehind) {
  StartWorkload();
  workload_->Calm(true);
  StartReaders();
  for (const char* point : {"copy.before_slot", "copy.slot_created", "copy.prepared", "copy.rows",
                            "copy.rows:5", "copy.copied", "copy.before_attach"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
    EXPECT_TRUE(NothingPublished()) << point;
  }
  // And at any time.
  std::minstd_rand random(7);
  for (int i = 0; i < 2; ++i) {
    follower_->Start();
    follower_->WaitKilled(Deadline::After(std::chrono::milliseconds(50 + random() % 400)));
    follower_->Kill();
  }
  follower_->Start("copy.after_attach");
  if (follower_->WaitKilled(Deadline::After(10s))) {
    EXPECT_FALSE(NothingPublished());
    follower_->Start();
  }
  workload_->Calm(false);
  ASSERT_TRUE(workload_->Do(50, Deadline::After(60s)));
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  ExpectNothingLeftBehind();
}

TEST_F(Crash, KilledAtAnyPointOfTheStreamNothingIsLostOrDoubled) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  follower_->Kill();
  for (const char* point :
       {"apply.staged", "apply.staged:3", "apply.staged:17", "apply.done", "apply.done:3",
        "apply.done:17", "publish.before_commit", "publish.before_commit:3",
        "publish.before_commit:17", "publish.after_commit", "publish.after_commit:3",
        "confirm.before", "confirm.before:3"}) {
    follower_->Start(point);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
  }
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  ExpectNothingLeftBehind();
}

TEST_F(Crash, KilledAtRandomNothingIsLostOrDoubled) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  std::minstd_rand random(static_cast<unsigned>(Setting("TIDEMARK_CRASH_SEED", 1)));
  for (int i = 0; i < Setting("TIDEMARK_CRASH_ROUNDS", 6); ++i) {
    EXPECT_FALSE(follower_->WaitKilled(Deadline::After(std::chrono::milliseconds(random() % 1200))));
    follower_->Kill();
    follower_->Start();
    if (i % 3 != 2) continue;
    ASSERT_NO_FATAL_FAILURE(CatchUpAndCompare());
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

TEST_F(Crash, ACrashOfTheStoreChangesNoAnswer) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  for (int i = 0; i < std::max(1, Setting("TIDEMARK_CRASH_ROUNDS", 6) / 3); ++i) {
    ASSERT_TRUE(workload_->Do(60, Deadline::After(60s)));
    StoreCluster().Stop("immediate");
    StoreCluster().Start();
    ASSERT_NO_FATAL_FAILURE(CatchUpAndCompare());
    for (const auto& line : instants_->AskAgain(Store(), 200)) ADD_FAILURE() << line;
    EXPECT_TRUE(follower_->running());
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

TEST_F(Crash, ACrashOfTheSourceLosesAndDoublesNothing) {
  follower_->Start();
  StartWorkload();
  ASSERT_TRUE(WaitFirstBasis());
  StartReaders();
  for (int i = 0; i < std::max(1, Setting("TIDEMARK_CRASH_ROUNDS", 6) / 3); ++i) {
    ASSERT_TRUE(workload_->Do(60, Deadline::After(60s)));
    SourceCluster().Stop("immediate");
    SourceCluster().Start();
    ASSERT_NO_FATAL_FAILURE(CatchUpAndCompare());
    EXPECT_TRUE(follower_->running());
  }
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

TEST_F(Crash, KilledBeforeCommitLeavesPreviousBasisVisible) {
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  ASSERT_TRUE(follower_->Stop());
  const auto basis = Store().Value("SELECT max(number) FROM tidemark.basis");
  follower_->Start("publish.before_commit");
  Source().Execute("UPDATE items SET n = 77 WHERE id <= 3");
  ASSERT_TRUE(follower_->WaitKilled(Deadline::After(30s)));
  EXPECT_EQ(Store().Value("SELECT max(number) FROM tidemark.basis"), basis);
  EXPECT_EQ(Store().Value("SELECT count(*) FROM items WHERE n = 77"), "0");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  EXPECT_EQ(Store().Value("SELECT count(*) FROM items WHERE n = 77"), "3");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM public_history.items WHERE id <= 3"), "6");
}

TEST_F(Crash, KilledAfterCommitAppliesNothingTwice) {
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  ASSERT_TRUE(follower_->Stop());
  follower_->Start("publish.after_commit");
  Source().Execute("UPDATE items SET n = n + 1 WHERE id <= 3");
  Source().Execute("INSERT INTO journal_line SELECT 1, 'once' FROM generate_series(1, 4)");
  ASSERT_TRUE(follower_->WaitKilled(Deadline::After(30s)));
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
  EXPECT_EQ(Store().Value("SELECT count(*) FROM journal_line"), "4");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM public_history.items WHERE id <= 3"), "6");
}

// One transaction over two tables, larger than a batch: applied in parts, killed between them.
TEST_F(Crash, ABasisIsVisibleWholeOrNotAtAll) {
  Source().Execute("INSERT INTO bulk SELECT i, 0, 'pad' FROM generate_series(1, 15000) i");
  Source().Execute("UPDATE items SET n = 0");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  std::atomic<int64_t> looks = 0;
  std::string wrong;
  std::jthread reader([&](std::stop_token stop) {
    try {
      auto store = StoreCluster().Connect(name_);
      const std::string whole =
          "SELECT concat_ws(' ', min(n), max(n), count(*), (SELECT min(n) FROM {1}), (SELECT max(n) "
          "FROM {1})) FROM {0}";
      while (!stop.stop_requested() && wrong.empty()) {
        auto seen = store.Value(fmt::format(fmt::runtime(whole), "bulk", "items"));
        const auto instant = base::QuoteLiteral(store.Value("SELECT clock_timestamp()"));
        auto then = store.Value(fmt::format(
            fmt::runtime(whole), fmt::format("tidemark.as_of(NULL::bulk, {})", instant),
            fmt::format("tidemark.as_of(NULL::items, {})", instant)));
        for (const auto& text : {seen, then}) {
          const auto n = text.substr(0, text.find(' '));
          if (text != fmt::format("{0} {0} 15000 {0} {0}", n)) wrong = text;
        }
        ++looks;
      }
    } catch (const base::Error& error) {
      wrong = error.Full();
    }
  });
  for (const char* point : {"apply.staged:2", "apply.done", "apply.done:3", "publish.before_commit",
                            "publish.after_commit"}) {
    follower_->Kill();
    follower_->Start(point);
    Source().Execute("BEGIN; UPDATE bulk SET n = n + 1; UPDATE items SET n = n + 1; "
                     "UPDATE bulk SET n = n - 1; UPDATE bulk SET n = n + 1; COMMIT");
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point;
  }
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  reader.request_stop();
  reader.join();
  EXPECT_EQ(wrong, "");
  EXPECT_GT(looks, 3);
  EXPECT_EQ(Store().Value("SELECT min(n) FROM bulk"), "5");
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

// The processes of a cluster, stopped as by a debugger: nothing becomes durable until Continue.
class Paused {
 public:
  explicit Paused(const tests::Cluster& cluster) {
    std::ifstream file(cluster.directory() / "data" / "postmaster.pid");
    pid_t postmaster = 0;
    file >> postmaster;
    // Twice: a process may be started while the first round goes on.
    for (int round = 0; round < 2; ++round) {
      for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const pid_t pid = std::atoi(entry.path().filename().c_str());
        if (pid <= 0) continue;
        std::ifstream stat(entry.path() / "stat");
        std::string text((std::istreambuf_iterator<char>(stat)), {});
        int parent = 0;
        char state = 0;
        if (text.empty() ||
            std::sscanf(text.c_str() + text.rfind(')') + 1, " %c %d", &state, &parent) != 2) {
          continue;
        }
        if (parent == postmaster) Stop(pid);
      }
      Stop(postmaster);
    }
  }
  ~Paused() { Continue(); }
  void Continue() {
    for (const pid_t pid : stopped_) ::kill(pid, SIGCONT);
    stopped_.clear();
  }

 private:
  void Stop(pid_t pid) {
    if (::kill(pid, SIGSTOP) == 0) stopped_.push_back(pid);
  }
  std::vector<pid_t> stopped_;
};

TEST_F(Crash, ASourceIsAcknowledgedOnlyAfterItsRowsAreDurable) {
  // Keep-alives every second and more, each of which asks for an answer.
  Source().Execute("ALTER SYSTEM SET wal_sender_timeout = '2s'");
  Source().Execute("SELECT pg_reload_conf()");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  const auto confirmed = [&] {
    return Lsn::Parse(Source().Value(
        "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", {slot()}));
  };
  for (const bool stopped : {false, true}) {
    SCOPED_TRACE(stopped ? "the store is stopped" : "the store's publishes wait for a lock");
    const auto before = Lsn::Parse(Source().Value("SELECT pg_current_wal_insert_lsn()"));
    std::optional<pg::Transaction> lock;
    std::optional<Paused> paused;
    if (stopped) {
      paused.emplace(StoreCluster());
    } else {
      lock.emplace(Store());
      Store().Execute("SELECT FROM tidemark.resume FOR UPDATE");
    }
    for (int i = 0; i < 3; ++i) {
      Source().Execute("INSERT INTO journal_line SELECT i, 'unstored' FROM generate_series(1, 4) i");
      const auto until = Deadline::After(1200ms);
      while (!until.passed()) {
        ASSERT_LE(confirmed(), before);
        std::this_thread::sleep_for(5ms);
      }
    }
    EXPECT_TRUE(follower_->running());
    // It hears of nothing, and must send all of it again.
    follower_->Kill();
    if (paused) paused->Continue();
    if (lock) {
      std::move(*lock).Commit();
      lock.reset();
    }
    ASSERT_LE(confirmed(), Lsn::Parse(Source().Value("SELECT pg_current_wal_insert_lsn()")));
    follower_->Start();
    ASSERT_NO_FATAL_FAILURE(CatchUp());
    EXPECT_EQ(Store().Value("SELECT count(*) FROM journal_line"), stopped ? "24" : "12");
  }
  Source().Execute("ALTER SYSTEM RESET wal_sender_timeout");
  Source().Execute("SELECT pg_reload_conf()");
  ASSERT_NO_FATAL_FAILURE(EndAndCompareAll());
}

int64_t PeakKilobytes(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

// 100 MB of rows are copied, then changed 300,000 times in one transaction. What is kept in memory
// is a batch of changes and the bounded queue before it.
TEST_F(Crash, RetainedMemoryIsOfChangesNeverOfRows) {
  constexpr int64_t kAllowedKilobytes = 48 * 1024;
  constexpr int64_t kAllowedChangesKilobytes = 256 * 1024;
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  const int64_t small = PeakKilobytes(follower_->pid());
  ASSERT_GT(small, 0);
  ASSERT_TRUE(follower_->Stop());

  Source().Execute("INSERT INTO bulk SELECT i, 0, repeat('p', 900) FROM generate_series(1, 100000) i");
  FollowerProcess second(name_ + "b", source_dsn_, StoreCluster().CreateDatabase(name_ + "b"));
  second.Start();
  const auto end = [&] { return Lsn::Parse(Source().Value("SELECT pg_current_wal_flush_lsn()")); };
  ASSERT_TRUE(oracle::WaitReceived(StoreCluster().Dsn(name_ + "b"), end(), Deadline::After(90s)))
      << second.Log();
  const int64_t copied = PeakKilobytes(second.pid());
  EXPECT_LT(copied, small + kAllowedKilobytes) << "after a first copy of 100 MB";

  Source().Execute("BEGIN; UPDATE bulk SET n = 1; UPDATE bulk SET n = 2; DELETE FROM bulk; COMMIT");
  ASSERT_TRUE(oracle::WaitReceived(StoreCluster().Dsn(name_ + "b"), end(), Deadline::After(120s)))
      << second.Log();
  const int64_t streamed = PeakKilobytes(second.pid());
  EXPECT_LT(streamed, small + kAllowedChangesKilobytes) << "after a transaction of 300 MB";
  std::cout << "peak " << small << " kB idle, " << copied << " kB after the copy, " << streamed
            << " kB after the transaction\n";
  EXPECT_TRUE(second.Stop()) << second.Log();
  source::DropSlot(Source(), slot() + "b", Deadline::After(20s));
}

}  // namespace
}  // namespace tidemark::crash
