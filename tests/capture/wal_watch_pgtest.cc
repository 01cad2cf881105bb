// A source that keeps little log for its slots, and a store that takes nothing: a person is told
// well before the slot is lost, louder at the end, and that the danger is over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mount.h>

#include "source/postgres/log_space.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

// A disk of its own for a server's log; only root may make one.
class LogDisk {
 public:
  /// Moves the log of `cluster`, which is stopped meanwhile.
  LogDisk(Cluster& cluster, const std::string& size) {
    made_ = mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    if (!made_) return;
    const auto log = cluster.directory() / "data" / "pg_wal";
    const auto moved = folder_.path() / "pg_wal";
    cluster.Stop();
    EXPECT_EQ(Run({"cp", "-a", log.string(), moved.string()}), 0);
    std::filesystem::remove_all(log);
    std::filesystem::create_directory_symlink(moved, log);
    EXPECT_EQ(Run({"chmod", "755", folder_.path().string()}), 0);
    cluster.Start();
  }
  ~LogDisk() {
    if (made_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  LogDisk(const LogDisk&) = delete;
  LogDisk& operator=(const LogDisk&) = delete;
  bool made() const { return made_; }

 private:
  TemporaryFolder folder_;
  bool made_ = false;
};

class WalWatch : public ::testing::Test {
 protected:
  void Begin(const std::string& keep) {
    settings_.push_back("max_slot_wal_keep_size = " + keep);
    source_cluster_.emplace(settings_, false, SourceBinaries());
    if (!log_disk_size_.empty()) {
      log_disk_.emplace(*source_cluster_, log_disk_size_);
      if (!log_disk_->made()) return;
    }
    static int number = 0;
    options_.name = "watched" + std::to_string(++number);
    options_.source_dsn = source_cluster_->CreateDatabase("watched");
    options_.store_dsn = Cluster::Shared().CreateDatabase(options_.name + "_store");
    source_.emplace(source_cluster_->Connect("watched"));
    store_.emplace(Cluster::Shared().Connect(options_.name + "_store"));
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); "
                     "CREATE TABLE elsewhere (v text)");
    source_->Execute("CREATE PUBLICATION tidemark FOR TABLE t");
    thread_ = std::jthread(
        [this](std::stop_token stop) { capture::MirrorJob(options_).Run(stop); });
    Await("SELECT count(*) = 1 FROM tidemark.resume");
  }
  void TearDown() override {
    if (stalled_) stalled_->Execute("ROLLBACK");
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    source_.reset();
    source_cluster_.reset();
    log_disk_.reset();
  }
  /// Until the store says true.
  void Await(const std::string& condition) {
    const auto deadline = base::Deadline::After(60s);
    while (!deadline.passed()) {
      try {
        if (store_->Value("SELECT coalesce((" + condition + "), false)") == "t") return;
      } catch (const base::Error& error) {
        if (error.IsConnectionLoss()) throw;  // else: not set up yet
      }
      std::this_thread::sleep_for(50ms);
    }
    ADD_FAILURE() << condition << "\n" << Problems();
  }
  std::string Problems() { return store_->Value("SELECT problems FROM tidemark.progress"); }
  void AwaitProblem(const std::string& text) {
    Await("SELECT problems::text LIKE '%" + text + "%' FROM tidemark.progress");
  }
  /// From now on nothing that is mirrored can be applied.
  void Stall() {
    stalled_.emplace(Cluster::Shared().Connect(options_.name + "_store"));
    stalled_->Execute("BEGIN; LOCK TABLE tidemark_current.d1 IN ACCESS EXCLUSIVE MODE");
    source_->Execute("INSERT INTO t VALUES (2)");
  }
  void WriteSegments(int count) {
    for (int i = 0; i < count; ++i) {
      source_->Execute("INSERT INTO elsewhere VALUES ('x'); SELECT pg_switch_wal()");
    }
  }

  std::vector<std::string> settings_;
  std::string log_disk_size_;  // empty: the disk of the rest
  std::optional<LogDisk> log_disk_;
  std::optional<Cluster> source_cluster_;
  capture::MirrorOptions options_;
  std::optional<pg::Connection> source_, store_, stalled_;
  std::jthread thread_;
};

TEST_F(WalWatch, WarnsWellBeforeTheSlotIsLostAndAgainRightBefore) {
  Begin("128MB");
  EXPECT_EQ(Problems(), "[]");
  Stall();
  WriteSegments(6);  // 96 MB of 128
  AwaitProblem("is going to lose its write-ahead log");
  EXPECT_THAT(Problems(), HasSubstr("max_slot_wal_keep_size are left"));
  EXPECT_EQ(store_->Value("SELECT slot_safe_bytes < 64 * 1048576 AND retained_bytes > 64 * 1048576 "
                          "FROM tidemark.progress"),
            "t");
  WriteSegments(5);
  AwaitProblem("loses its write-ahead log at the source");
  // The store takes it again before the source's checkpoint: nothing is lost.
  stalled_->Execute("ROLLBACK");
  Await("SELECT problems = '[]' FROM tidemark.progress");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "2");
  EXPECT_EQ(source_->Value("SELECT wal_status FROM pg_replication_slots"), "reserved");
}

TEST_F(WalWatch, WithoutALimitMuchRetainedLogIsToldOf) {
  options_.wal_warn_bytes = 40 << 20;
  Begin("-1");
  Stall();
  WriteSegments(1);
  Await("SELECT retained_bytes > 0 FROM tidemark.progress");
  EXPECT_EQ(Problems(), "[]");
  WriteSegments(3);
  AwaitProblem("holds back much of the source");
  EXPECT_THAT(Problems(), HasSubstr("no max_slot_wal_keep_size"));
}

TEST_F(WalWatch, MoreThanHalfOfWhatIsFreeOnTheSourcesDiskIsToldOfUntilItIsOver) {
  settings_ = {"min_wal_size = 32MB", "max_wal_size = 64MB"};
  log_disk_size_ = "320m";
  Begin("-1");
  if (!log_disk_->made()) GTEST_SKIP() << "only root can make a disk";
  EXPECT_EQ(Problems(), "[]");
  Await("SELECT log_free_bytes BETWEEN 150 << 20 AND 320 << 20 FROM tidemark.progress");
  Stall();
  WriteSegments(9);
  AwaitProblem("may fill the disk");
  EXPECT_THAT(Problems(), HasSubstr("are free there"));
  EXPECT_EQ(store_->Value("SELECT retained_bytes > log_free_bytes / 2 FROM tidemark.progress"),
            "t");
  stalled_->Execute("ROLLBACK");
  Await("SELECT problems = '[]' FROM tidemark.progress");
}

TEST_F(WalWatch, TheDiskOfAServerThatCannotBeLookedIntoIsNotKnown) {
  Cluster cluster({}, false, SourceBinaries());
  auto server = cluster.Connect();
  EXPECT_GT(source::FreeLogBytes(server).value_or(0), 0);
  server.Execute("CREATE ROLE plain; SET ROLE plain");
  EXPECT_EQ(source::FreeLogBytes(server), std::nullopt);
  server.Execute("RESET ROLE");
  // Another server has its folder there: as on a machine that mirrors one elsewhere.
  const auto file = cluster.directory() / "data" / "postmaster.pid";
  ASSERT_EQ(tests::Run({"sed", "-i", "3s/.*/1000000000/", file.string()}), 0);
  EXPECT_EQ(source::FreeLogBytes(server), std::nullopt);
}

TEST_F(WalWatch, LostForGoodEveryTableIsReadAgainAndWhatIsGoneIsClosed) {
  Begin("64MB");
  source_->Execute("INSERT INTO t SELECT generate_series(10, 29)");
  Await("SELECT count(*) = 21 FROM t");
  Stall();
  source_->Execute("DELETE FROM t WHERE id BETWEEN 10 AND 14; INSERT INTO t VALUES (100)");
  WriteSegments(7);
  source_->Execute("CHECKPOINT");
  EXPECT_EQ(source_->Value("SELECT wal_status FROM pg_replication_slots"), "lost");
  source_->Execute("DELETE FROM t WHERE id BETWEEN 15 AND 19");
  stalled_->Execute("ROLLBACK");
  Await("SELECT count(*) = 13 AND max(id) = 100 FROM t");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t WHERE id BETWEEN 10 AND 19 "
                          "AND tx_to IS NOT NULL"),
            "10");
  EXPECT_THAT(store_->Value("SELECT reason FROM tidemark.resync LIMIT 1"), HasSubstr("has lost"));
  source_->Execute("INSERT INTO t VALUES (101)");
  Await("SELECT max(id) = 101 FROM t");
  Await("SELECT problems = '[]' FROM tidemark.progress");
}

}  // namespace
}  // namespace tidemark::tests
