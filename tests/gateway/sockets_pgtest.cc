// `tidemark serve` beside sources that it could reach: whatever its clients do, it has its
// listeners, its clients and the store.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "tests/calls/tidemark_process.h"
#include "tests/cluster.h"
#include "tests/free_port.h"
#include "tests/gateway/process_sockets.h"
#include "tests/gateway/sql_client.h"
#include "tests/http/http_client.h"

namespace tidemark::tests {
namespace {

using base::Deadline;
using testing::HasSubstr;

// A server that listens on TCP only as far as others are concerned, and writes down who comes.
class ReachableCluster : public Cluster {
 public:
  explicit ReachableCluster(uint16_t port)
      : Cluster({"listen_addresses = '127.0.0.1'", fmt::format("port = {}", port),
                 "log_connections = on"}) {}
  std::string TcpDsn(const std::string& database) const {
    return fmt::format("host=127.0.0.1 port={} user=postgres dbname={}", port(), database);
  }
  // How often somebody has connected.
  int Connections() const {
    std::ifstream in(directory() / "log");
    int count = 0;
    for (std::string line; std::getline(in, line);) {
      count += line.find("connection received") != std::string::npos ? 1 : 0;
    }
    return count;
  }
};

// Looks at a process's sockets again and again until it goes.
class SocketWatch {
 public:
  SocketWatch(int pid, std::map<uint16_t, std::string> ports)
      : pid_(pid), ports_(std::move(ports)), thread_([this](std::stop_token stop) { Run(stop); }) {}
  // What was seen: "listens at NAME", "client at NAME", "connected to NAME", or what else there
  // was.
  std::set<std::string> Seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::string Name(uint16_t port) const {
    const auto found = ports_.find(port);
    return found == ports_.end() ? fmt::format("port {}", port) : found->second;
  }
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto sockets = SocketsOf(pid_);
      std::set<uint16_t> listeners;
      for (const auto& socket : sockets) {
        if (socket.kind == ProcessSocket::Kind::kListens) listeners.insert(socket.local_port);
      }
      const std::lock_guard lock(mutex_);
      for (const auto& socket : sockets) {
        switch (socket.kind) {
          case ProcessSocket::Kind::kListens:
            seen_.insert("listens at " + Name(socket.local_port));
            break;
          case ProcessSocket::Kind::kConnected:
            seen_.insert(listeners.contains(socket.local_port)
                             ? "client at " + Name(socket.local_port)
                             : "connected to " + Name(socket.remote_port));
            break;
          case ProcessSocket::Kind::kLocal:
            seen_.insert("local socket " + socket.path);
            break;
          case ProcessSocket::Kind::kKernel:
            break;
          case ProcessSocket::Kind::kOther:
            seen_.insert("other socket of " + socket.path);
            break;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  int pid_;
  std::map<uint16_t, std::string> ports_;
  std::mutex mutex_;
  std::set<std::string> seen_;
  std::jthread thread_;
};

class ServeSockets : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(Config()) << text; }
  std::string Config() const { return (folder_.path() / "tidemark.yaml").string(); }

  TemporaryFolder folder_;
};

void AwaitListener(base::ChildProcess& process, uint16_t port) {
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  for (;;) {
    try {
      const HttpClient client(port);
      return;
    } catch (const std::runtime_error&) {
    }
    if (deadline.passed() || process.Wait(Deadline::After(std::chrono::milliseconds(20)))) {
      throw std::runtime_error("serve does not listen");
    }
  }
}

// Again and again: a request that comes before the query has begun cancels nothing.
void CancelRunning(SqlClient& client) {
  struct Free {
    void operator()(PGcancel* cancel) const { PQfreeCancel(cancel); }
  };
  const std::unique_ptr<PGcancel, Free> cancel(PQgetCancel(client.get()));
  const auto deadline = Deadline::After(std::chrono::seconds(30));
  while (PQconsumeInput(client.get()) == 1 && PQisBusy(client.get()) == 1) {
    ASSERT_FALSE(deadline.passed());
    char complaint[256];
    ASSERT_EQ(PQcancel(cancel.get(), complaint, sizeof complaint), 1) << complaint;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_F(ServeSockets, ServingNeverContactsASource) {
  ReachableCluster source(FreePort()), other(FreePort()), store(FreePort());
  source.CreateDatabase("shop");
  store.CreateDatabase("kept");
  source.Connect("shop").Execute(
      "CREATE TABLE items (id int PRIMARY KEY, name text); INSERT INTO items VALUES (1, 'one'); "
      "CREATE PUBLICATION tidemark FOR ALL TABLES");
  std::ofstream(folder_.path() / "prices.csv") << "sku,price\nx,1\n";
  // Sources of every kind, one of which is captured; the mirror never is.
  Write(fmt::format(R"(store: "{}"
allow_volatile_store: true
sources:
  shop: {{postgres: "{}"}}
  unused: {{postgres: "{}"}}
  crm: {{adbc: {{driver: adbc_driver_postgresql, uri: "postgresql://postgres@127.0.0.1:{}/postgres"}}}}
  lake: {{files: "{}"}}
mirrors:
  mirrored: {{source: unused, publication: tidemark}}
datasets:
  public.items: {{source: shop, relation: public.items, strategy: snapshot, key: [id]}}
  crm.rows: {{source: crm, relation: rows, strategy: snapshot, key: [id]}}
  lake.prices: {{source: lake, relation: prices.csv, strategy: snapshot, key: [sku]}}
cadence: "* * * * *"
)",
                    store.TcpDsn("kept"), source.TcpDsn("shop"), other.TcpDsn("postgres"),
                    other.port(), folder_.path().string()));
  std::string output;
  ASSERT_EQ(
      tests::Run({TIDEMARK_BINARY, "capture", "public.items", "lake.prices", "--config", Config()},
                 &output),
      0)
      << output;
  const int contacts = source.Connections(), others = other.Connections();
  ASSERT_GT(contacts, 0);

  const uint16_t gateway = FreePort(), http = FreePort();
  auto serve = StartTidemark({"serve", "--config", Config(), "--superusers", "--port",
                              std::to_string(gateway), "--http-port", std::to_string(http)});
  AwaitListener(serve, gateway);
  AwaitListener(serve, http);
  SocketWatch watch(serve.pid(), {{gateway, "the gateway"},
                                  {http, "http"},
                                  {static_cast<uint16_t>(store.port()), "the store"},
                                  {static_cast<uint16_t>(source.port()), "the source"},
                                  {static_cast<uint16_t>(other.port()), "another server"}});

  const auto dsn = fmt::format("host=127.0.0.1 port={} user=postgres dbname=kept", gateway);
  const auto instant = store.Connect("kept").Value("SELECT max(system_time) FROM tidemark.basis");
  HttpClient events(http);
  ASSERT_TRUE(events.Send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  for (int round = 0; round < 10; ++round) {
    SqlClient client(dsn);
    EXPECT_EQ(client.Simple("SELECT name FROM items").rows, "one\n");
    EXPECT_EQ(client.Extended("SELECT id FROM items FOR SYSTEM_TIME AS OF '" + instant + "'").rows,
              "1\n");
    EXPECT_EQ(client.Simple("SET tidemark.as_of = '" + instant + "'").Outcome(), "ok");
    EXPECT_EQ(client.Simple("SELECT count(*) FROM items").rows, "1\n");
    EXPECT_NE(client.Simple("SELECT * FROM items FOR SYSTEM_TIME AS OF '2001-01-01'").state, "");
    SqlClient sleeper(dsn);
    ASSERT_EQ(PQsendQuery(sleeper.get(), "SELECT pg_sleep(60)"), 1);
    CancelRunning(sleeper);
    PGresult* result = PQgetResult(sleeper.get());
    EXPECT_STREQ(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
    PQclear(result);
    for (const char* page : {"/healthz", "/v1/status", "/metrics"}) {
      HttpClient web(http);
      ASSERT_TRUE(web.Send(
          fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", page)));
      EXPECT_NE(web.Read().status, 0) << page;
    }
  }
  // The instances that it must not know answer nobody any more; it goes on serving.
  source.Stop("immediate");
  other.Stop("immediate");
  EXPECT_EQ(SqlClient(dsn).Simple("SELECT name FROM items").rows, "one\n");

  EXPECT_THAT(watch.Seen(),
              testing::UnorderedElementsAre("listens at the gateway", "listens at http",
                                            "client at the gateway", "client at http",
                                            "connected to the store"));
  EXPECT_EQ(source.Connections(), contacts);
  EXPECT_EQ(other.Connections(), others);
}

TEST_F(ServeSockets, TheWatchSeesAProgramThatDoesContactASource) {
  ReachableCluster source(FreePort()), store(FreePort());
  source.CreateDatabase("shop");
  store.CreateDatabase("kept");
  auto locked = source.Connect("shop");
  locked.Execute("CREATE TABLE items (id int PRIMARY KEY)");
  locked.Execute("BEGIN; LOCK TABLE items");
  Write(fmt::format(
      "store: \"{}\"\nallow_volatile_store: true\nsources:\n  shop: {{postgres: \"{}\"}}\n"
      "datasets:\n  public.items: {{source: shop, relation: public.items, strategy: snapshot, "
      "key: [id]}}\n",
      store.TcpDsn("kept"), source.TcpDsn("shop")));
  auto capture = StartTidemark({"capture", "--config", Config()});
  SocketWatch watch(capture.pid(), {{static_cast<uint16_t>(store.port()), "the store"},
                                    {static_cast<uint16_t>(source.port()), "the source"}});
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  while (!watch.Seen().contains("connected to the source") && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(watch.Seen(),
              testing::UnorderedElementsAre("connected to the source", "connected to the store"));
  locked.Execute("ROLLBACK");
  const auto ended = capture.Wait(Deadline::After(std::chrono::seconds(60)));
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->ok());
}

}  // namespace
}  // namespace tidemark::tests
