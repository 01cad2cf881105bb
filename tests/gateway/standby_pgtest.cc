// A gateway before a hot standby of the store: it answers what has been replayed, waits for what a
// token names, and never answers an instant that it has not replayed.
#include <fmt/format.h>

#include <optional>

#include "gateway/listener.h"
#include "tests/gateway/time_travel_fixture.h"
#include "tests/standby.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;

/// A gateway before a streaming standby of the shared cluster.
class StandbyGateway {
 public:
  StandbyGateway() : server_(Cluster::Shared(), {"max_standby_streaming_delay = 30s"}) {
    gateway::Options options;
    options.listen_port = 0;
    options.store.host = server_.host();
    options.on_log = [](std::string_view) {};
    listener_ = std::make_unique<gateway::Listener>(options);
    thread_ = std::jthread([this](std::stop_token stop) { listener_->Run(stop); });
  }

  std::string Dsn(const std::string& database) const {
    return fmt::format("host=127.0.0.1 port={} dbname={} user=postgres", listener_->port(),
                       database);
  }
  void PauseReplay() const { server_.Connect().Execute("SELECT pg_wal_replay_pause()"); }
  void ResumeReplay() const { server_.Connect().Execute("SELECT pg_wal_replay_resume()"); }
  void AwaitReplay(const std::string& lsn) const { server_.AwaitReplay(lsn); }

 private:
  Standby server_;
  std::unique_ptr<gateway::Listener> listener_;
  std::jthread thread_;
};

class StandbyReads : public TimeTravelFixture {
 protected:
  static void SetUpTestSuite() {
    TimeTravelFixture::SetUpTestSuite();
    standby_ = std::make_unique<StandbyGateway>();
    standby_->AwaitReplay(mirror().store_->Value("SELECT pg_current_wal_flush_lsn()"));
  }
  static void TearDownTestSuite() {
    standby_.reset();
    TimeTravelFixture::TearDownTestSuite();
  }
  void TearDown() override { standby_->ResumeReplay(); }

  static SqlClient OnStandby() { return SqlClient(standby_->Dsn(mirror().database())); }
  static void PublishOneMore() {
    mirror().source_->Execute("INSERT INTO instants SELECT max(id) + 1, now() FROM instants");
    mirror().CatchUp();
  }
  static std::unique_ptr<StandbyGateway> standby_;
};
std::unique_ptr<StandbyGateway> StandbyReads::standby_;

constexpr const char* kCount = "SELECT count(*) FROM instants";

TEST_F(StandbyReads, AnswersThePastAndThePresentAsTheStoreDoes) {
  SqlClient here = OnStandby(), there = Client();
  for (const std::string& sql :
       {"SELECT n FROM t FOR SYSTEM_TIME AS OF " + At(1) + " WHERE id = 1",
        std::string("SELECT n FROM t WHERE id = 1"),
        "SELECT count(*) FROM t FOR SYSTEM_TIME FROM " + At(0) + " TO " + At(2),
        std::string("SELECT n FROM t FOR SYSTEM_TIME AS OF now() WHERE id = 1")}) {
    EXPECT_EQ(RowsOf(here, sql), RowsOf(there, sql)) << sql;
  }
}

TEST_F(StandbyReads, NeverAnswersAnInstantThatItHasNotReplayed) {
  standby_->PauseReplay();
  PublishOneMore();
  const std::string after = mirror().store_->Value("SELECT clock_timestamp()");
  SqlClient client = OnStandby();
  client.Simple("SET tidemark.await_timeout = '300ms'");
  const std::string sql = fmt::format("{} FOR SYSTEM_TIME AS OF '{}'", kCount, after);
  const Answer refused = Both(client, sql);
  EXPECT_EQ(refused.state, "55000");
  EXPECT_THAT(refused.message, HasSubstr("this store has been replayed only up to"));
  standby_->ResumeReplay();
  client.Simple("SET tidemark.await_timeout = '20s'");
  SqlClient there = Client();
  EXPECT_EQ(RowsOf(client, sql), RowsOf(there, sql));
}

TEST_F(StandbyReads, WaitsForWhatAnAwaitTokenNames) {
  standby_->PauseReplay();
  PublishOneMore();
  auto& store = *mirror().store_;
  const std::string token = store.Value("SELECT tidemark.await_token()");
  const std::string snapshot = store.Value("SELECT tidemark.snapshot_token()");
  const std::string rows = store.Value(kCount);

  SqlClient impatient = OnStandby();
  impatient.Simple("SET tidemark.await_timeout = '200'");
  impatient.Simple("SET tidemark.await = '" + token + "'");
  EXPECT_EQ(Both(impatient, kCount).state, "57014");
  SqlClient ahead = OnStandby();
  ahead.Simple("SET tidemark.snapshot = '" + snapshot + "'");
  EXPECT_EQ(Both(ahead, kCount).state, "0B000");

  SqlClient patient = OnStandby();
  patient.Simple("SET tidemark.await_timeout = '20s'");
  patient.Simple("SET tidemark.await = '" + token + "'");
  patient.Simple("SET tidemark.snapshot = '" + snapshot + "'");
  std::jthread resume([] { standby_->ResumeReplay(); });
  patient.Simple("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(RowsOf(patient, kCount), rows + "\n");
  patient.Simple("COMMIT");
}

}  // namespace
}  // namespace tidemark::tests
