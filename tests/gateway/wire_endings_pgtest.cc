// How connections begin and end: limits, versions of the protocol, clients and stores that leave
// with and without a word. Nothing stays behind at the store.
#include <csignal>

#include "tests/gateway/wire_fixture.h"
#include "wire/bytes.h"

namespace tidemark::tests {
namespace {

using gateway::RawClient;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class WireEndings : public WireFixture {};

TEST_F(WireEndings, AClientThatLeavesWithoutAWordLeavesNoSession) {
  cluster().Connect(name_).Execute("CREATE TABLE t (id int)");
  for (const bool resets : {true, false}) {
    {
      auto client = Raw();
      client.Start(name_);
      client.ErrorOf("BEGIN; LOCK t");
      if (resets) client.Reset();
    }
    EXPECT_TRUE(BecomesDeserted());
  }
  EXPECT_EQ(Connect().Value("SELECT count(*) FROM t"), "0");
}

TEST_F(WireEndings, AClientThatLeavesAmidRowsLeavesNoSession) {
  for (const bool resets : {true, false}) {
    {
      auto client = Raw();
      client.Start(name_);
      client.Send(QueryBytes("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 1000000)) TO "
                             "STDOUT"));
      EXPECT_THAT(client.Read(), StartsWith("H"));
      if (resets) client.Reset();
    }
    EXPECT_TRUE(BecomesDeserted());
  }
}

TEST_F(WireEndings, AClientThatLeavesAmidItsOwnRowsLeavesNoSessionAndNoRow) {
  cluster().Connect(name_).Execute("CREATE TABLE t (v text)");
  for (const bool resets : {true, false}) {
    auto client = Raw();
    client.Start(name_);
    client.Send(QueryBytes("COPY t FROM STDIN"));
    EXPECT_THAT(client.Read(), StartsWith("G"));
    std::string rows;
    wire::WriteMessage(rows, wire::kCopyData, std::string(100'000, 'x') + "\n");
    client.Send(rows + rows + rows.substr(0, 50'000));
    resets ? client.Reset() : client.FinishSending();
    EXPECT_TRUE(BecomesDeserted());
  }
  EXPECT_EQ(Connect().Value("SELECT count(*) FROM t"), "0");
}

TEST_F(WireEndings, AStoreThatLooksForItsClientMissesItThroughTheGateway) {
  auto client = Raw();
  client.Start(name_);
  client.ErrorOf("SET client_connection_check_interval = '100ms'");
  client.Send(QueryBytes("SELECT pg_sleep(600)"));
  EXPECT_TRUE(
      BecomesTrue("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND "
                  "datname = current_database()"));
  client.FinishSending();
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireEndings, AClientThatLeavesAtAnyPointOfItsStartLeavesNoSession) {
  const auto start = StartupBytes(name_);
  for (size_t bytes = 0; bytes <= start.size(); bytes += 3) {
    auto client = Raw();
    client.Send(std::string_view(start).substr(0, bytes));
    if (bytes % 2 == 0) client.Reset();
  }
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireEndings, NewcomersEndTheOldestOfTooManyStarts) {
  options_.startups_max = 3;
  auto oldest = Raw(), second = Raw(), third = Raw();
  for (auto* one : {&oldest, &second, &third}) one->Send(std::string_view("\0\0", 2));
  EXPECT_EQ(Connect().Value("SELECT 1"), "1");
  EXPECT_EQ(oldest.Read(), "");
  second.Send(StartupBytes(name_).substr(2));
  EXPECT_THAT(second.Read(), StartsWith("R"));
}

TEST_F(WireEndings, AStartThatIsTooLongIsRefusedAtItsLength) {
  options_.startup_bytes_max = 200;
  auto client = Raw();
  client.Send(std::string_view("\0\0\0\xc9", 4));
  EXPECT_THAT(client.Read(), HasSubstr("invalid length of startup packet"));
  EXPECT_EQ(client.Read(), "");
  EXPECT_EQ(Connect().Value("SELECT 1"), "1");
}

TEST_F(WireEndings, ReplicationIsRefusedInAllItsSpellings) {
  for (const char* value : {"true", "on", "1", "yes", "database"}) {
    auto client = Raw();
    std::string start;
    wire::WriteStartup(start, {{"user", "postgres"}, {"replication", value}});
    client.Send(start);
    EXPECT_THAT(client.Read(), HasSubstr("0A000")) << value;
  }
  EXPECT_EQ(Connect("replication=false").Value("SELECT 1"), "1");
}

// Servers before version 18 negotiate 3.2 down to 3.0; what they say goes to the client as it is.
TEST_F(WireEndings, ProtocolVersionsAreNegotiatedWithTheStore) {
  for (const uint16_t minor : {0, 2, 9}) {
    auto through = Raw();
    RawClient direct(cluster());
    std::string said[2];
    for (int i : {0, 1}) {
      auto& client = i == 0 ? through : direct;
      client.Send(StartupBytes(name_, minor));
      for (std::string one = client.Read(); one[0] != 'Z'; one = client.Read()) {
        if (one[0] == 'K') said[i] += fmt::format("key of {} bytes;", one.size() - 5);
        if (one[0] != 'K') said[i] += one;
      }
    }
    EXPECT_EQ(said[0], said[1]) << minor;
  }
}

TEST_F(WireEndings, CancelKeysOfAnyVersionReachTheStore) {
  for (const uint16_t minor : {0, 2}) {
    auto client = Raw();
    client.Send(StartupBytes(name_, minor));
    std::string key;
    for (std::string one = client.Read(); one[0] != 'Z'; one = client.Read()) {
      if (one[0] == 'K') key = one.substr(1);
    }
    client.Send(QueryBytes("SELECT pg_sleep(600)"));
    EXPECT_TRUE(
        BecomesTrue("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND "
                    "datname = current_database()"));
    std::string cancel;
    wire::WriteCancelRequest(cancel, wire::LoadBigEndian<uint32_t>(key.data()), key.substr(4));
    auto canceler = Raw();
    canceler.Send(cancel);
    EXPECT_EQ(canceler.Read(), "");
    std::string answer;
    for (std::string one = client.Read(); one[0] != 'Z'; one = client.Read()) answer += one;
    EXPECT_THAT(answer, HasSubstr("57014"));
  }
}

TEST_F(WireEndings, NotificationsReachAnIdleClient) {
  auto client = Raw();
  client.Start(name_);
  client.ErrorOf("LISTEN news");
  auto direct = cluster().Connect(name_);
  for (const char* word : {"one", "two"}) {
    direct.Execute(fmt::format("NOTIFY news, '{}'", word));
    EXPECT_THAT(client.Read(), testing::AllOf(StartsWith("A"), HasSubstr(word)));
  }
}

/// With a store of its own, which may go away.
class WireStoreEndings : public WireFixture {
 protected:
  Cluster& cluster() override { return own_; }

 private:
  Cluster own_;
};

TEST_F(WireStoreEndings, ClientsAreToldOfARestartAndServedAfterIt) {
  for (const std::string mode : {"fast", "immediate"}) {
    auto idle = Raw(), busy = Raw(), in_transaction = Raw();
    for (auto* client : {&idle, &busy, &in_transaction}) client->Start(name_);
    in_transaction.ErrorOf("BEGIN");
    busy.Send(QueryBytes("SELECT pg_sleep(600)"));
    EXPECT_TRUE(
        BecomesTrue("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"));
    cluster().Stop(mode);
    for (auto* client : {&idle, &in_transaction, &busy}) {
      const auto said = client->ReadToEnd();
      EXPECT_THAT(said, AnyOf(HasSubstr("57P01"), HasSubstr("57P02"))) << mode;
    }
    EXPECT_THAT(ConnectError().message(), HasSubstr("could not connect to the store"));
    cluster().Start();
    EXPECT_EQ(Connect().Value("SELECT 1"), "1");
    EXPECT_TRUE(BecomesDeserted());
  }
}

}  // namespace
}  // namespace tidemark::tests
