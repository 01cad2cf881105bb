// Events from a hot standby of the store, on which nobody can listen, before and after it takes
// over.
#include <fstream>

#include "tests/http/http_fixture.h"

namespace tidemark::tests {
namespace {

/// A streaming standby of a cluster.
class Standby {
 public:
  explicit Standby(const Cluster& primary) {
    Must({(ServerBinaries() / "pg_basebackup").string(), "-D", data(), "-R", "-X", "stream", "-c",
          "fast", "-h", primary.host(), "-U", "postgres"});
    std::ofstream(data() + "/postgresql.auto.conf", std::ios::app)
        << "unix_socket_directories = '" << folder_.path().string() << "'\nhot_standby = on\n";
    Control({"-w", "-t", "60", "-l", data() + "/log", "start"});
  }
  ~Standby() { Control({"-m", "immediate", "-w", "stop"}); }
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  void Promote() { Control({"-w", "promote"}); }
  std::string Dsn(const std::string& database) const {
    return "host=" + folder_.path().string() + " user=postgres dbname=" + database;
  }

 private:
  std::string data() const { return (folder_.path() / "data").string(); }
  void Control(std::vector<std::string> words) {
    words.insert(words.begin(), {(ServerBinaries() / "pg_ctl").string(), "-D", data()});
    Must(std::move(words));
  }
  static void Must(std::vector<std::string> command) {
    std::string output;
    EXPECT_EQ(Run(AsServerUser(std::move(command)), &output), 0) << output;
  }

  TemporaryFolder folder_;
};

class HttpStandby : public HttpFixture {};

TEST_F(HttpStandby, EventsAreToldFromAStandbyAndGoOnWhenItTakesOver) {
  Cluster primary;
  store_dsn_ = primary.CreateDatabase("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  temporal::Migrate(*store_);
  CaptureChange();
  Standby standby(primary);
  const auto primary_dsn = store_dsn_;
  store_dsn_ = standby.Dsn("kept");
  EventReader reader(port(), "", "0-0");  // of a server before the standby
  EXPECT_EQ(reader.head().status, 200);
  ASSERT_TRUE(reader.Await(1));

  store_dsn_ = primary_dsn;
  CaptureChange();
  CaptureChange();
  ASSERT_TRUE(reader.Await(3));
  EXPECT_EQ(Metric("tidemark_last_basis"), 3);
  // A standby may still be about to receive what the reader has seen elsewhere.
  EXPECT_EQ(EventReader(port(), "", "99-1").head().status, 200);

  primary.Stop();
  standby.Promote();
  store_dsn_ = standby.Dsn("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  CaptureChange();
  ASSERT_TRUE(reader.Await(4));
  EXPECT_EQ(reader.ids(), KeptIds());
  EXPECT_TRUE(Becomes([&] {
    return Value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == "1";
  }));
}

}  // namespace
}  // namespace tidemark::tests
