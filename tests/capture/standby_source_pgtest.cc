// A hot standby as a source, from PostgreSQL 16 on: nothing is asked of its primary but the
// publication, and, for a slot, that it logs which transactions run there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <stop_token>
#include <thread>

#include "source/postgres/preflight.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

/// A streaming standby, begun from a copy of the stopped primary: the servers come without
/// pg_basebackup.
class CopiedStandby {
 public:
  explicit CopiedStandby(Cluster& primary) {
    primary.Stop();
    Must({"cp", "-a", (primary.directory() / "data").string(), Data()});
    primary.Start();
    std::ofstream conf(Data() + "/postgresql.conf", std::ios::app);
    conf << "unix_socket_directories = '" << folder_.path().string() << "'\n"
         << "hot_standby_feedback = on\nwal_receiver_status_interval = 1s\n"
         << "primary_conninfo = 'host=" << primary.host() << " user=postgres'\n";
    conf.close();
    std::ofstream(Data() + "/standby.signal").close();
    Control({"-w", "-t", "60", "-l", folder_.path().string() + "/data/log", "start"});
  }
  ~CopiedStandby() {
    std::string ignored;
    Run(Command({"-m", "immediate", "-w", "stop"}), &ignored);
  }
  CopiedStandby(const CopiedStandby&) = delete;
  CopiedStandby& operator=(const CopiedStandby&) = delete;

  std::string Dsn(const std::string& database) const {
    return fmt::format("host={} user=postgres dbname={}", folder_.path().string(), database);
  }

 private:
  std::string Data() const { return (folder_.path() / "data").string(); }
  std::vector<std::string> Command(const std::vector<std::string>& what) const {
    std::vector<std::string> command{(SourceBinaries() / "pg_ctl").string(), "-D", Data()};
    command.insert(command.end(), what.begin(), what.end());
    return AsServerUser(command);
  }
  void Control(const std::vector<std::string>& what) const { Must(Command(what)); }
  static void Must(const std::vector<std::string>& command) {
    std::string output;
    if (Run(command, &output) != 0) throw std::runtime_error(command[0] + ": " + output);
  }

  TemporaryFolder folder_;
};

class StandbySource : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    if (source_->server_version() < 160000) {
      GTEST_SKIP() << "standbys decode from PostgreSQL 16 on";
    }
    primary_ = std::make_unique<Cluster>(std::vector<std::string>{}, false, SourceBinaries());
    primary_->CreateDatabase("shop");
    standby_ = std::make_unique<CopiedStandby>(*primary_);
    source_.emplace(primary_->Connect("shop"));
    options_.source_dsn = standby_->Dsn("shop");
  }
  void TearDown() override {
    Stop();
    snapshots_ = {};
  }
  /// The primary logs its running transactions all the time, as a busy one does now and then.
  void KeepLogging() {
    snapshots_ = std::jthread([this](const std::stop_token& stop) {
      auto primary = primary_->Connect("shop");
      while (!stop.stop_requested()) {
        primary.Execute("SELECT pg_log_standby_snapshot()");
        std::this_thread::sleep_for(100ms);
      }
    });
  }
  /// Until the standby has what the primary has now.
  void AwaitReplay() {
    source_->Execute("CHECKPOINT");  // flushes what was committed
    const auto lsn = source_->Value("SELECT pg_current_wal_flush_lsn()");
    auto standby = Connect(false);
    const auto deadline = base::Deadline::After(30s);
    while (standby.Value("SELECT pg_last_wal_replay_lsn() >= '" + lsn + "'") != "t") {
      ASSERT_FALSE(deadline.passed()) << "the standby does not follow";
      std::this_thread::sleep_for(20ms);
    }
  }
  pg::Connection Connect(bool replication) const {
    return pg::Connection::Open({.dsn = standby_->Dsn("shop"), .replication = replication},
                                base::Deadline::After(20s));
  }
  void ExpectSoon(const std::string& sql) {
    const auto deadline = base::Deadline::After(60s);
    const auto wanted = Rows(*source_, sql);
    std::string got;
    do {
      std::this_thread::sleep_for(50ms);
      try {
        got = Rows(*store_, sql);
      } catch (const base::Error& error) {
        if (error.IsConnectionLoss()) throw;
        got = error.message();
      }
    } while (!deadline.passed() && got != wanted);
    EXPECT_EQ(got, wanted) << failure_;
  }

  std::unique_ptr<Cluster> primary_;
  std::unique_ptr<CopiedStandby> standby_;
  std::jthread snapshots_;
};

TEST_F(StandbySource, IsCopiedAndFollowedWithTablesThatComeLater) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v text); "
                   "INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i; "
                   "CREATE PUBLICATION tidemark FOR ALL TABLES");
  AwaitReplay();
  KeepLogging();
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  const auto before = CatchUp();
  source_->Execute("UPDATE t SET v = 'changed' WHERE id <= 10; DELETE FROM t WHERE id > 990");
  source_->Execute("TRUNCATE t; INSERT INTO t VALUES (1, 'again')");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.as_of_position(NULL::public.t, '" +
                          before +
                          "')"),
            "1000");
  source_->Execute("CREATE TABLE late (id int PRIMARY KEY); INSERT INTO late VALUES (1), (2)");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  source_->Execute("ALTER TABLE t ALTER v TYPE varchar(20) USING v || '!'; INSERT INTO t VALUES "
                   "(2, 'x')");
  ExpectSoon("SELECT * FROM t ORDER BY id");
  auto standby = Connect(false);
  const auto slot = source::InspectSlot(standby, capture::SlotNameFor(options_.name));
  ASSERT_TRUE(slot);
  EXPECT_FALSE(slot->failover);
  Await("SELECT retained_bytes >= 0 FROM tidemark.progress");
  // Stopped and started again, it goes on where it was.
  Stop();
  source_->Execute("INSERT INTO t VALUES (3, 'meanwhile')");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(StandbySource, ASlotSaysThatItWaitsForThePrimary) {
  auto standby = Connect(false);
  auto replication = Connect(true);
  std::string said;
  const auto slot = source::CreateSlot(
      replication, standby,
      {.name = "waiting",
       .deadline = base::Deadline::After(30s),
       .on_wait = [&](const std::vector<source::SlotBlocker>& blockers) {
         said = blockers.at(0).Describe();
         source_->Execute("SELECT pg_log_standby_snapshot()");
       }});
  EXPECT_TRUE(slot.consistent_point.valid());
  EXPECT_THAT(said, HasSubstr("SELECT pg_log_standby_snapshot() on the primary"));
}

TEST_F(StandbySource, PreflightSaysWhatAStandbyNeeds) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION tidemark FOR ALL "
                   "TABLES");
  auto standby = pg::Connection::Open(
      {.dsn = standby_->Dsn("shop"), .settings = {{"search_path", ""}}},
          base::Deadline::After(20s));
  AwaitReplay();
  auto report = source::Preflight(standby, {});
  EXPECT_FALSE(report.Refused()) << source::FormatProblems(report.problems);
  EXPECT_THAT(source::FormatProblems(report.problems), HasSubstr("pg_log_standby_snapshot"));
  report = source::Preflight(standby, {.publication = "missing"});
  EXPECT_TRUE(report.Refused());
  EXPECT_THAT(source::FormatProblems(report.problems), HasSubstr("cannot be created on a standby"));
}

}  // namespace
}  // namespace tidemark::tests
