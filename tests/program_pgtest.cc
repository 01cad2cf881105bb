// The binary as people run it: what it answers to mistakes, and `up` from start to stop.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "base/child_process.h"
#include "tests/cluster.h"
#include "tests/free_port.h"

namespace tidemark::tests {
namespace {

namespace fs = std::filesystem;
using base::ChildProcess;
using base::Deadline;
using testing::HasSubstr;

struct Answer {
  int code = 0;
  std::string text;
};

/// Runs the program in an empty folder, without TIDEMARK_* variables but those given.
class Program : public testing::Test {
 protected:
  Answer Tidemark(std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
    std::vector<std::string> command = {"env", "-C", folder_.path().string()};
    command.insert(command.end(), variables.begin(), variables.end());
    command.emplace_back(TIDEMARK_BINARY);
    command.insert(command.end(), arguments.begin(), arguments.end());
    Answer answer;
    answer.code = tests::Run(command, &answer.text);
    return answer;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }
  std::string Data() const { return (folder_.path() / "data").string(); }

  TemporaryFolder folder_;
};

TEST_F(Program, WrongCommandLinesAreUsageErrors) {
  EXPECT_EQ(Tidemark({}).code, 2);
  EXPECT_EQ(Tidemark({"statsu"}).code, 2);
  EXPECT_THAT(Tidemark({"statsu"}).text,
              HasSubstr("unknown command \"statsu\", did you mean \"status\"?"));
  EXPECT_EQ(Tidemark({"wait"}).code, 2);
  EXPECT_EQ(Tidemark({"up", "--port", "70000"}).code, 2);
  EXPECT_EQ(Tidemark({"wait", "--lsn", "nonsense"}).code, 2);
  EXPECT_EQ(Tidemark({"--help"}).code, 0);
  EXPECT_EQ(Tidemark({"--version"}).code, 0);
}

TEST_F(Program, ATypoInTheConfigurationIsShownWithItsPlace) {
  Write("tidemark.yaml", "store: embedded\nmirors: {}\n");
  const auto answer = Tidemark({"status"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_EQ(answer.text,
            "tidemark: error: tidemark.yaml:2:1: unknown key \"mirors\" in the configuration, did "
            "you mean \"mirrors\"? (F0000)\n");
}

TEST_F(Program, ADatasetIsCheckedCapturedAndItsVersionsVerified) {
  const auto dsn = tests::Cluster::Shared().CreateDatabase("program_datasets");
  const auto configure = [&](const std::string& key, const std::string& more = "") {
    Write("tidemark.yaml", "store: \"" + dsn + "\"\nallow_volatile_store: true\n" +
                               "sources: {lake: {files: .}}\ndatasets: {lake.prices: {source: "
                               "lake, "
                               "relation: prices.csv, strategy: snapshot, key: [" +
                               key + "]" + more + "}}\n");
  };
  Write("prices.csv", "sku,price\nx,1\ny,2\n");
  configure("nothing");
  EXPECT_EQ(Tidemark({"check"}).code, 3);
  configure("sku");
  const auto checked = Tidemark({"check"});
  EXPECT_EQ(checked.code, 0) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("dataset lake.prices: can be captured"));

  const auto first = Tidemark({"capture"});
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("published as basis 1"));
  EXPECT_THAT(Tidemark({"capture", "lake.prices"}).text, HasSubstr("unchanged"));
  Write("prices.csv", "sku,price\nx,1\nx,2\n");
  const auto refused = Tidemark({"capture"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("nothing was published"));
  EXPECT_THAT(Tidemark({"status"}).text, HasSubstr("lake.prices"));
  EXPECT_EQ(Tidemark({"verify", "--versions"}).code, 0);
  EXPECT_EQ(Tidemark({"verify", "--history"}).code, 0);
  EXPECT_EQ(Tidemark({"verify", "--history", "lake.nothing"}).code, 1);
  tests::Cluster::Shared()
      .Connect("program_datasets")
      .Execute("UPDATE tidemark_current.d1 SET _from = 77 WHERE sku = 'y'");
  const auto tampered = Tidemark({"verify", "--history", "lake.prices"});
  EXPECT_EQ(tampered.code, 4) << tampered.text;
  EXPECT_THAT(tampered.text, HasSubstr("tx 77, which was never published"));

  Write("tidemark.yaml", "store: \"" + dsn + "\"\nallow_volatile_store: true\n");
  const auto idle = Tidemark({"follow"});
  EXPECT_EQ(idle.code, 2);
  EXPECT_THAT(idle.text, HasSubstr("there is nothing to follow"));
  configure("sku", ", cadence: \"61 * * * *\"");
  EXPECT_THAT(Tidemark({"follow"}).text, HasSubstr("\"61\" is no minute"));
}

TEST_F(Program, UpWithoutASourceSaysWhatToName) {
  const auto answer = Tidemark({"up"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.text, HasSubstr("there is nothing to mirror (F0000)"));
  EXPECT_THAT(answer.text, HasSubstr("--source"));
}

TEST_F(Program, AnUnreachableSourceFailsAndCreatesNothing) {
  const auto answer =
      Tidemark({"up", "--source", "postgres://app:hush@127.0.0.1:1/shop", "--data", Data(),
                "--port", std::to_string(FreePort()), "--http-port", "0"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text, HasSubstr("could not connect"));
  EXPECT_THAT(answer.text, HasSubstr("(08001)"));
  EXPECT_THAT(answer.text, testing::Not(HasSubstr("hush")));
  EXPECT_FALSE(fs::exists(Data()));
}

TEST_F(Program, AWrongPasswordFailsWithTheServersWords) {
  auto& cluster = Cluster::Shared();
  auto connection = cluster.Connect();
  connection.Execute("CREATE ROLE locked_out LOGIN PASSWORD 'right'");
  const auto hba = cluster.directory() / "data/pg_hba.conf";
  std::ifstream in(hba);
  const std::string before{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(hba) << "local all locked_out scram-sha-256\n" << before;
  connection.Execute("SELECT pg_reload_conf()");
  const auto answer =
      Tidemark({"check", "--source",
                "host=" + cluster.host() + " dbname=postgres user=locked_out password=hush"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text, HasSubstr("password authentication failed for user \"locked_out\""));
  EXPECT_THAT(answer.text, testing::Not(HasSubstr("hush")));
}

TEST_F(Program, ASourceWithoutLogicalDecodingIsRefusedByPreflight) {
  Cluster cluster({"wal_level = replica"});
  const auto answer = Tidemark({"up", "--source", cluster.Dsn(), "--data", Data(), "--port",
                                std::to_string(FreePort()), "--http-port", "0"});
  EXPECT_EQ(answer.code, 3);
  EXPECT_THAT(answer.text, HasSubstr("wal_level"));
  EXPECT_FALSE(fs::exists(Data()));
  EXPECT_EQ(Tidemark({"check", "--source", cluster.Dsn()}).code, 3);
}

TEST_F(Program, ATakenPortIsNamedBeforeAnythingIsCreated) {
  const TakenPort taken;
  const auto answer =
      Tidemark({"up", "--source", Cluster::Shared().Dsn(), "--data", Data(), "--port",
                std::to_string(taken.port())});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text,
              HasSubstr("gateway: port " + std::to_string(taken.port()) + " of 127.0.0.1 is taken "
                        "(55006)"));
  EXPECT_FALSE(fs::exists(Data()));
}

TEST_F(Program, ATakenHttpPortIsNamedWithWhatChoosesAnother) {
  const TakenPort taken;
  const auto port = std::to_string(taken.port());
  for (const auto& answer :
       {Tidemark({"up", "--source", Cluster::Shared().Dsn(), "--data", Data(), "--port", "0",
                  "--http-port", port}),
        Tidemark({"serve", "--store", Cluster::Shared().Dsn(), "--port", "0", "--http-port",
                  port})}) {
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.text, HasSubstr("http: "));
    EXPECT_THAT(answer.text, HasSubstr(port));
    EXPECT_THAT(answer.text, HasSubstr("(55006)"));
    EXPECT_THAT(answer.text, HasSubstr("--http-port"));
    EXPECT_THAT(answer.text, HasSubstr("\"http: {listen: …}\""));
  }
  EXPECT_FALSE(fs::exists(Data()));
  const auto same = Tidemark({"up", "--source", Cluster::Shared().Dsn(), "--data", Data(), "--port",
                              port, "--http-port", port});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.text, HasSubstr("gateway and http cannot both listen on"));
}

TEST_F(Program, ListeningElsewhereNeedsAWord) {
  Write("tidemark.yaml", "gateway: {listen: \"0.0.0.0:5480\"}\n");
  const auto answer = Tidemark({"serve", "--store", "dbname=x"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_THAT(answer.text, HasSubstr("insecure: true"));
  Write("tidemark.yaml", "http: {listen: \"0.0.0.0:8480\"}\n");
  const auto http = Tidemark({"serve", "--store", "dbname=x"});
  EXPECT_EQ(http.code, 2);
  EXPECT_THAT(http.text, HasSubstr("\"http: {insecure: true}\""));
}

TEST_F(Program, ASecondUpInTheSameFolderIsRefusedByName) {
  fs::create_directory(Data());
  Write("data/lock", "4711\n");
  const int fd = ::open((Data() + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  const auto answer =
      Tidemark({"up", "--source", Cluster::Shared().Dsn(), "--data", Data()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text, HasSubstr("another tidemark up (process 4711) works in \"" + Data()));
  ::close(fd);
}

TEST_F(Program, StatusWithoutAStoreSaysSo) {
  const auto answer = Tidemark({"status", "--data", Data()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text, HasSubstr("there is no embedded store in"));
  EXPECT_THAT(answer.text, HasSubstr("(55000)"));
}

TEST_F(Program, AVolatileStoreIsRefusedByFollow) {
  const auto answer = Tidemark({"follow", "--source", Cluster::Shared().Dsn(), "--store",
                                Cluster::Shared().Dsn()});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.text, HasSubstr("fsync is off"));
  EXPECT_THAT(answer.text, HasSubstr("allow_volatile_store: true"));
}

/// `tidemark up` on a source of its own.
class Up : public Program {
 protected:
  Up() : source_(Cluster::Shared().CreateDatabase("shop")) {
    auto connection = Cluster::Shared().Connect("shop");
    connection.Execute("CREATE TABLE orders (id int PRIMARY KEY, note text)");
    connection.Execute("INSERT INTO orders SELECT n, 'note' FROM generate_series(1, 100) AS n");
  }
  ~Up() override {
    if (up_) {
      up_->Signal(SIGTERM);
      up_->Wait(Deadline::After(std::chrono::seconds(60)));
    }
    auto connection = Cluster::Shared().Connect();
    connection.Execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
        "WHERE active_pid IS NOT NULL");
    for (int i = 0; i < 100; ++i) {
      try {
        connection.Execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
        break;
      } catch (const base::Error&) {
        base::WaitReadable({}, Deadline::After(std::chrono::milliseconds(50)), {});
      }
    }
    connection.Execute("DROP DATABASE shop WITH (FORCE)");
  }

  void Start() {
    const int log = ::open(Log().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    up_ = ChildProcess::Start(
        {.command = {TIDEMARK_BINARY, "up", "--source", source_, "--data", Data(), "--port",
                     std::to_string(port_), "--http-port", std::to_string(http_port_)},
         .environment = {"PATH=/usr/bin:/bin", "TIDEMARK_ALLOW_VOLATILE_STORE=true",
                         "TIDEMARK_PG_BINDIR=" + ServerBinaries().string()},
         .folder = folder_.path(),
         .output_fd = log});
    ::close(log);
  }
  std::string Log() const { return (folder_.path() / "up.log").string(); }
  std::string LogText() const {
    std::ifstream in(Log());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The line by which readers connect, once `up` has printed it.
  std::string AwaitPsqlLine() {
    for (int i = 0; i < 1200; ++i) {
      const auto text = LogText();
      if (const auto at = text.find("\nPGPASSFILE="); at != std::string::npos) {
        return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      }
      if (up_->Wait(Deadline::After(std::chrono::milliseconds(50)))) break;
    }
    ADD_FAILURE() << LogText();
    return "false";
  }
  Answer Psql(const std::string& line, const std::string& sql) {
    Answer answer;
    answer.code = tests::Run({"sh", "-c", line + " -XAtc \"$0\"", sql}, &answer.text);
    return answer;
  }
  std::optional<base::ExitStatus> Stop(int signal) {
    up_->Signal(signal);
    const auto status = up_->Wait(Deadline::After(std::chrono::seconds(60)));
    up_.reset();
    return status;
  }

  std::string source_;
  int port_ = FreePort(), http_port_ = FreePort();
  std::optional<ChildProcess> up_;
};

TEST_F(Up, CopiesFollowsServesAndStopsCleanly) {
  Start();
  const auto line = AwaitPsqlLine();
  EXPECT_EQ(line, "PGPASSFILE=" + Data() + "/pgpass psql -h 127.0.0.1 -p " +
                      std::to_string(port_) + " -U reader shop");
  EXPECT_EQ(Psql(line, "SELECT count(*) FROM orders").text, "100\n");
  const auto url = "http://127.0.0.1:" + std::to_string(http_port_) + "/v1/status";
  EXPECT_THAT(LogText(), HasSubstr("\n" + url + "\n"));
  Answer status_page;
  status_page.code = tests::Run({"python3", "-c",
                                 "import sys, json, urllib.request; print(json.load("
                                 "urllib.request.urlopen(sys.argv[1]))['mirrors'][0]['readable'])",
                                 url},
                                &status_page.text);
  EXPECT_EQ(status_page.text, "True\n");
  const auto write = Psql(line, "DELETE FROM orders");
  EXPECT_NE(write.code, 0);
  const auto moment = Psql(line, "SELECT clock_timestamp()").text;

  auto source = Cluster::Shared().Connect("shop");
  source.Execute("DELETE FROM orders WHERE id > 10");
  const auto position = source.Value("SELECT pg_current_wal_insert_lsn()");
  EXPECT_EQ(Tidemark({"wait", "--lsn", position, "--timeout", "30s", "--data", Data()}).code, 0);
  EXPECT_EQ(Psql(line, "SELECT count(*) FROM orders").text, "10\n");
  EXPECT_EQ(Psql(line, "SELECT count(*) FROM orders FOR SYSTEM_TIME AS OF '" +
                           moment.substr(0, moment.size() - 1) + "'")
                .text,
            "100\n");

  const auto late = Tidemark({"wait", "--lsn", "FFFF/0", "--timeout", "100ms", "--data", Data()});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.text, HasSubstr("(57014)"));
  EXPECT_THAT(Tidemark({"status", "--data", Data()}).text, HasSubstr("public.orders"));
  EXPECT_THAT(Tidemark({"status", "--json", "--data", Data()}).text,
              HasSubstr("\"apply\":\"replica\""));
  EXPECT_THAT(Tidemark({"bases", "--data", Data()}).text, HasSubstr("SYSTEM TIME"));
  EXPECT_THAT(Tidemark({"evidence", "1", "--data", Data()}).text, HasSubstr("public.orders"));
  EXPECT_EQ(Tidemark({"verify", "--source", source_, "--data", Data()}).code, 0);
  // Killed after its second chunk, it goes on with the third.
  const std::vector<std::string> verify = {"verify", "--source",     source_, "--data", Data(),
                                           "--json", "--chunk-rows", "3"};
  EXPECT_NE(Tidemark(verify, {"TIDEMARK_KILL_POINT=verify.chunk_stored:2"}).code, 0);
  auto resume = verify;
  resume.emplace_back("--resume");
  const auto resumed = Tidemark(resume);
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_THAT(resumed.text, HasSubstr("\"chunks\":4"));
  EXPECT_THAT(resumed.text, HasSubstr("\"segments\":2"));
  EXPECT_THAT(resumed.text, HasSubstr("\"source_rows\":10"));
  EXPECT_THAT(Tidemark(resume).text, HasSubstr("nothing was left to compare"));
  EXPECT_EQ(Tidemark({"verify", "--resume", "--history", "--data", Data()}).code, 2);
  const auto history = Tidemark({"verify", "--history", "--data", Data()});
  EXPECT_EQ(history.code, 0) << history.text;
  EXPECT_THAT(history.text, HasSubstr("public.orders"));
  const auto resync = Tidemark({"resync", "public.orders", "--data", Data(), "--json"});
  EXPECT_EQ(resync.code, 0) << resync.text;
  EXPECT_THAT(resync.text, HasSubstr("\"published\":true"));
  EXPECT_THAT(resync.text, HasSubstr("\"puts\":0"));
  EXPECT_EQ(Tidemark({"resync", "public.nothing", "--data", Data()}).code, 1);
  EXPECT_EQ(Tidemark({"prune", "--data", Data()}).code, 2);  // no retention is declared
  const auto erased = Tidemark(
      {"prune", "--erase", "public.orders", "--key", "id=50", "--data", Data(), "--json"});
  EXPECT_EQ(erased.code, 0) << erased.text;
  EXPECT_THAT(erased.text, HasSubstr("\"versions\":1"));
  const auto added = Tidemark({"user", "add", "analyst", "--data", Data(), "--port",
                               std::to_string(port_)});
  EXPECT_EQ(added.code, 0) << added.text;
  EXPECT_EQ(Psql(added.text.substr(0, added.text.size() - 1), "SELECT count(*) FROM orders").text,
            "10\n");

  const auto status = Stop(SIGTERM);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok()) << status->ToString() << "\n" << LogText();
  EXPECT_FALSE(fs::exists(Data() + "/store/postmaster.pid"));
}

TEST_F(Up, CaptureAndServingShareOnlyTheStore) {
  auto& cluster = Cluster::Shared();
  const auto store_dsn = cluster.CreateDatabase("shop_store");
  const auto configuration = [&](const std::string& source) {
    return "store: \"" + store_dsn + "\"\nsources:\n  shop: {postgres: \"" + source +
           "\"}\nmirrors:\n  shop: {source: shop, publication: tidemark}\n";
  };
  Write("follow.yaml", configuration(source_));
  // The serving half is told of a source that is nowhere.
  Write("serve.yaml",
        configuration("host=/nowhere dbname=shop") + "gateway: {superusers: true}\n");
  const auto start = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TIDEMARK_BINARY);
    return ChildProcess::Start({.command = std::move(arguments),
                                .environment = {"PATH=/usr/bin:/bin",
                                                "TIDEMARK_ALLOW_VOLATILE_STORE=true"},
                                .folder = folder_.path(),
                                .output_fd = -1});
  };
  auto follow = start({"follow", "--config", "follow.yaml"});
  auto store = cluster.Connect("shop_store");
  const auto deadline = Deadline::After(std::chrono::seconds(60));
  while (!deadline.passed() &&
         store.Value("SELECT to_regclass('public.orders') IS NOT NULL") != "t") {
    base::WaitReadable({}, Deadline::After(std::chrono::milliseconds(50)), {});
  }
  follow.Signal(SIGTERM);
  ASSERT_TRUE(follow.Wait(Deadline::After(std::chrono::seconds(30))).has_value());

  auto serve = start({"serve", "--config", "serve.yaml", "--port", std::to_string(port_),
                      "--http-port", "0"});
  const auto line =
      "psql -h 127.0.0.1 -p " + std::to_string(port_) + " -U postgres shop_store";
  Answer answer;
  while (!deadline.passed() && answer.code + (answer.text.empty() ? 1 : 0) != 0) {
    answer = Psql(line, "SELECT count(*) FROM orders FOR SYSTEM_TIME AS OF now()");
    base::WaitReadable({}, Deadline::After(std::chrono::milliseconds(50)), {});
  }
  EXPECT_EQ(answer.text, "100\n");
  EXPECT_EQ(cluster.Connect().Value(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'"),
            "0");
  serve.Signal(SIGTERM);
  EXPECT_TRUE(serve.Wait(Deadline::After(std::chrono::seconds(30))).has_value());
}

TEST_F(Up, GoesOnWhereItWasAfterBeingKilled) {
  Start();
  AwaitPsqlLine();
  Stop(SIGKILL);
  auto source = Cluster::Shared().Connect("shop");
  source.Execute("INSERT INTO orders VALUES (1000, 'while it was away')");
  Start();
  const auto line = AwaitPsqlLine();
  const auto position = source.Value("SELECT pg_current_wal_insert_lsn()");
  EXPECT_EQ(Tidemark({"wait", "--lsn", position, "--timeout", "30s", "--data", Data()}).code, 0);
  EXPECT_EQ(Psql(line, "SELECT count(*) FROM orders").text, "101\n");
}

}  // namespace
}  // namespace tidemark::tests
