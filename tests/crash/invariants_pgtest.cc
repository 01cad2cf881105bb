// The invariants of the design that concern capture, each a test of its name (the answer to AS OF:
// tests/immutability).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/identifier.h"
#include "source/postgres/slot.h"
#include "tests/crash/crash_fixture.h"

namespace tidemark::crash {
namespace {

using namespace std::chrono_literals;
using base::Deadline;
using base::Lsn;

// One transaction over two tables, larger than a batch: applied in parts, killed between them.
TEST_F(Crash, ABasisIsVisibleWholeOrNotAtAll) {
  Source().Execute("INSERT INTO bulk SELECT i, 0, 'pad' FROM generate_series(1, 4000) i");
  Source().Execute("UPDATE items SET n = 0");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  std::atomic<int64_t> looks = 0;
  std::string wrong;
  std::jthread reader([&](std::stop_token stop) {
    try {
      auto store = StoreCluster().Connect(name_);
      const std::string whole =
          "SELECT concat_ws(' ', min(n), max(n), count(*), (SELECT min(n) FROM {1}), (SELECT "
          "max(n) "
          "FROM {1})) FROM {0}";
      while (!stop.stop_requested() && wrong.empty()) {
        auto seen = store.Value(fmt::format(fmt::runtime(whole), "bulk", "items"));
        const auto instant = base::QuoteLiteral(store.Value("SELECT clock_timestamp()"));
        auto then = store.Value(
            fmt::format(fmt::runtime(whole), fmt::format("tidemark.as_of(NULL::bulk, {})", instant),
                        fmt::format("tidemark.as_of(NULL::items, {})", instant)));
        for (const auto& text : {seen, then}) {
          const auto n = text.substr(0, text.find(' '));
          if (text != fmt::format("{0} {0} 4000 {0} {0}", n)) wrong = text;
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
    Source().Execute(
        "BEGIN; UPDATE bulk SET n = n + 1; UPDATE items SET n = n + 1; "
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
      Source().Execute(
          "INSERT INTO journal_line SELECT i, 'unstored' FROM generate_series(1, 4) i");
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

  Source().Execute(
      "INSERT INTO bulk SELECT i, 0, repeat('p', 900) FROM generate_series(1, 100000) i");
  FollowerProcess second(name_ + "b", source_dsn_, StoreCluster().CreateDatabase(name_ + "b"),
                         std::nullopt);
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
