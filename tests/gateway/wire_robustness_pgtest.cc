// The gateway under clients that are many, slow, gone, or not in their right mind: others go on
// being served, and nothing stays behind.
#include <libpq-fe.h>
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

#include "tests/gateway/wire_fixture.h"

namespace tidemark::tests {
namespace {

using gateway::RawClient;

class WireRobustness : public WireFixture {
 protected:
  /// Runs `client` in that many threads.
  template <typename Client>
  static void InThreads(int count, Client&& client) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&client, i] { client(i); });
  }
};

/// A client that goes on asking until it is destroyed; every answer must be right.
class Bystander {
 public:
  explicit Bystander(const std::string& dsn)
      : thread_([this, dsn](const std::stop_token& stop) {
          auto connection =
              pg::Connection::Open({.dsn = dsn}, base::Deadline::After(std::chrono::seconds(30)));
          while (!stop.stop_requested()) {
            try {
              if (connection.Value("SELECT sum(i) FROM generate_series(1, 100) i") == "5050") {
                ++served_;
                continue;
              }
            } catch (const base::Error& error) {
              ADD_FAILURE() << "a bystander was not served: " << error.Full();
            }
            ++failed_;
            return;
          }
        }) {}
  int served() const { return served_; }
  int failed() const { return failed_; }

 private:
  std::atomic<int> served_ = 0, failed_ = 0;
  std::jthread thread_;
};

size_t OpenDescriptors() {
  using std::filesystem::directory_iterator;
  return static_cast<size_t>(
      std::distance(directory_iterator("/proc/self/fd"), directory_iterator()));
}

/// A libpq session and the right to cancel what it does.
class Cancelable {
 public:
  explicit Cancelable(const std::string& dsn)
      : connection_(PQconnectdb(dsn.c_str()), PQfinish),
        cancel_(PQgetCancel(connection_.get()), PQfreeCancel) {}
  bool Cancel() {
    char why[256];
    return PQcancel(cancel_.get(), why, sizeof why) == 1;
  }
  /// The SQLSTATE it ends with, "00000" when it succeeds.
  std::string Run(const char* sql) {
    PQsendQuery(connection_.get(), sql);
    return Outcome();
  }
  /// Cancels it until it ends: a cancel that comes before the query has begun is of no effect.
  std::string RunCanceled(const char* sql) {
    PQsendQuery(connection_.get(), sql);
    for (int tries = 0; tries < 1000; ++tries) {
      pollfd answer = {.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
      if (::poll(&answer, 1, 20) > 0) break;
      if (!Cancel()) return "no cancel";
    }
    return Outcome();
  }

 private:
  std::string Outcome() {
    std::string state = "lost";
    while (PGresult* result = PQgetResult(connection_.get())) {
      const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
      state = code != nullptr ? code : PQresultStatus(result) == PGRES_TUPLES_OK ? "00000" : "lost";
      PQclear(result);
    }
    return state;
  }
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  std::unique_ptr<PGcancel, void (*)(PGcancel*)> cancel_;
};

TEST_F(WireRobustness, OfFiftyClientsOnlyTheNamedQueriesEnd) {
  listener();
  std::atomic<int> canceled = 0, bystanders = 0;
  std::atomic<int> canceling = 25;
  InThreads(50, [&](int i) {
    Cancelable client(Dsn());
    if (i % 2 == 0) {  // never named
      do {
        ASSERT_EQ(client.Run("SELECT pg_sleep(0.02)"), "00000");
        ++bystanders;
      } while (canceling > 0);
      return;
    }
    for (int round = 0; round < 4; ++round) {
      EXPECT_TRUE(client.Cancel());  // before
      EXPECT_EQ(client.Run("SELECT 1"), "00000");
      EXPECT_EQ(client.RunCanceled("SELECT pg_sleep(600)"), "57014");  // during
      ++canceled;
      EXPECT_TRUE(client.Cancel());  // after
      EXPECT_EQ(client.Run("SELECT pg_sleep(0.01)"), "00000");
    }
    --canceling;
  });
  EXPECT_EQ(canceled, 100);
  EXPECT_GE(bystanders, 25);
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireRobustness, ClientsThatStartForeverKeepOutNobody) {
  options_.startups_max = 40;
  options_.startup_timeout = std::chrono::seconds(5);
  listener();
  const auto start = StartupBytes(name_);
  std::vector<std::unique_ptr<RawClient>> slow;
  for (size_t i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<RawClient>(listener().port()));
    slow.back()->Send(std::string_view(start).substr(0, 1 + i % 20));
    if (i % 10 == 0) {
      EXPECT_EQ(Connect().Value("SELECT 1"), "1");
    }
  }
  for (auto& client : slow) EXPECT_EQ(client->Read(), "");  // every one of them ends
  EXPECT_EQ(Connect().Value("SELECT 1"), "1");
  EXPECT_TRUE(BecomesDeserted());
}

TEST_F(WireRobustness, TwoThousandShortConnectionsLeaveNothingBehind) {
  listener();
  EXPECT_TRUE(BecomesDeserted());
  Bystander bystander(Dsn());
  EXPECT_TRUE(Becomes([&] { return bystander.served() > 0; }));
  const size_t before = OpenDescriptors();
  std::atomic<int> answered = 0;
  InThreads(16, [&](int thread) {
    for (int i = 0; i < 125; ++i) {
      auto client = Raw();
      switch ((thread + i) % 4) {
        case 0:  // says nothing
          break;
        case 1:  // leaves before it has been let in
          client.Send(StartupBytes(name_));
          break;
        default:
          client.Start(name_);
          if (client.ErrorOf("SELECT 1").fields.empty()) ++answered;
          if (i % 2 == 0) client.Reset();
      }
    }
  });
  EXPECT_EQ(answered, 1000);
  EXPECT_TRUE(Becomes([&] { return listener().sessions() <= 1; }));
  EXPECT_TRUE(Becomes([&] { return OpenDescriptors() <= before + 2; }));
  EXPECT_GT(bystander.served(), 0);
  EXPECT_EQ(bystander.failed(), 0);
}

TEST_F(WireRobustness, AReaderThatStallsHoldsTheStoreBackAndNothingIsKept) {
  constexpr int kRows = 200'000;  // of 1 kB
  auto client = Raw();
  client.Start(name_);
  client.Send(QueryBytes(fmt::format(
      "COPY (SELECT repeat('x', 999) FROM generate_series(1, {})) TO STDOUT", kRows)));
  // The store waits for its client, which it would not if the gateway kept what it sends.
  EXPECT_TRUE(
      BecomesTrue("SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() "
                  "AND wait_event = 'ClientWrite'"));
  const auto copied = std::stoll(cluster().Connect(name_).Value(
      "SELECT bytes_processed FROM pg_stat_progress_copy WHERE datname = current_database()"));
  EXPECT_LT(copied, 20'000'000);
  int rows = 0;
  for (std::string one = client.Read(); one[0] != 'Z'; one = client.Read()) {
    rows += one[0] == 'd' ? 1 : 0;
  }
  EXPECT_EQ(rows, kRows);
}

/// A session that uses most of the protocol, as a client would send it.
std::vector<std::string> RecordedSession(const std::string& database) {
  std::vector<std::string> messages = {StartupBytes(database)};
  const auto add = [&](auto&& write) { write(messages.emplace_back()); };
  const auto sync = [](std::string& out) { wire::WriteMessage(out, wire::kSync); };
  messages.push_back(QueryBytes("SELECT 1; SELECT 'x' AS é"));
  messages.push_back(QueryBytes("BEGIN; CREATE TEMP TABLE x (a int); INSERT INTO x VALUES (1)"));
  add([](std::string& out) { wire::Parse{"s", "SELECT $1::text", {}}.Write(out); });
  add([](std::string& out) { wire::Naming{'S', "s"}.WriteDescribe(out); });
  add([](std::string& out) { wire::Bind{"p", "s", {"value"}}.Write(out); });
  add([](std::string& out) { wire::Naming{'P', "p"}.WriteDescribe(out); });
  add([](std::string& out) { wire::Execute{"p", 1}.Write(out); });
  add(sync);
  messages.push_back(QueryBytes("SELECT * FROM pg_class FOR SYSTEM_TIME AS OF '2026-01-01' c"));
  add([](std::string& out) {
    wire::Parse{"t", "SELECT * FROM x FOR SYSTEM_TIME AS OF $1", {}}.Write(out);
  });
  add([](std::string& out) { wire::Bind{"", "t", {"2026-01-01"}}.Write(out); });
  add([](std::string& out) { wire::Execute{"", 0}.Write(out); });
  add(sync);
  messages.push_back(QueryBytes("ROLLBACK"));
  messages.push_back(QueryBytes("CREATE TEMP TABLE y (a int); COPY y FROM STDIN; TABLE y"));
  add([](std::string& out) { wire::WriteMessage(out, wire::kCopyData, "1\n2\n"); });
  add([](std::string& out) { wire::WriteMessage(out, wire::kCopyDone); });
  messages.push_back(QueryBytes("COPY (SELECT generate_series(1, 100)) TO STDOUT"));
  add([](std::string& out) { wire::Naming{'S', "s"}.WriteClose(out); });
  add([](std::string& out) { wire::WriteMessage(out, wire::kFlush); });
  add(sync);
  add([](std::string& out) { wire::WriteMessage(out, wire::kTerminate); });
  return messages;
}

/// What a client may send whose memory fails it: messages lost, repeated and swapped, bits turned,
/// lengths changed, ends cut off. The same for the same seed.
std::string Mutated(std::vector<std::string> messages, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  const size_t first = below(5) == 0 ? 0 : 1;  // most get past the start
  const auto any = [&]() -> std::string& {
    return messages[first + below(messages.size() - first)];
  };
  for (size_t i = 1 + below(4); i > 0; --i) {
    switch (below(7)) {
      case 0:
        any().clear();
        break;
      case 1: {
        const std::string copy = any();
        any() += copy;
        break;
      }
      case 2:
        std::swap(any(), any());
        break;
      case 3:
        if (auto& one = any(); !one.empty()) {
          one[below(one.size())] ^= static_cast<char>(1 << below(8));
        }
        break;
      case 4:  // the length
        if (auto& one = any(); one.size() >= 5) one[1 + below(4)] = static_cast<char>(random());
        break;
      case 5:
        if (auto& one = any(); !one.empty()) one.resize(below(one.size()));
        break;
      default: {
        auto& one = any();
        std::string noise(below(40), 0);
        for (char& c : noise) c = static_cast<char>(random());
        one.insert(below(one.size() + 1), noise);
      }
    }
  }
  std::string bytes;
  for (const auto& one : messages) bytes += one;
  return bytes;
}

TEST_F(WireRobustness, MutatedSessionsEndAndOthersGoOn) {
  listener();
  const auto recorded = RecordedSession(name_);
  std::string whole;
  for (const auto& one : recorded) whole += one;
  {
    auto valid = Raw();
    valid.Send(whole);
    const auto answers = valid.ReadToEnd();
    ASSERT_THAT(answers, testing::HasSubstr("COPY 100"));
  }
  Bystander bystander(Dsn());
  InThreads(4, [&](int thread) {
    for (uint32_t i = 0; i < 100; ++i) {
      const uint32_t seed = 1000 * static_cast<uint32_t>(thread) + i;
      auto client = Raw();
      try {
        client.Send(Mutated(recorded, seed));
        client.FinishSending();
        while (!client.ReadBytes(1).empty()) {
        }
      } catch (const boost::system::system_error&) {
        // The gateway had closed before it was sent everything.
      } catch (const std::exception& error) {
        ADD_FAILURE() << "seed " << seed << ": " << error.what();
      }
    }
  });
  EXPECT_GT(bystander.served(), 0);
  EXPECT_EQ(bystander.failed(), 0);
  EXPECT_TRUE(Becomes([&] { return listener().sessions() <= 1; }));
  EXPECT_TRUE(
      BecomesTrue("SELECT count(*) <= 1 FROM pg_stat_activity WHERE datname = current_database() "
                  "AND pid <> pg_backend_pid()"));
}

}  // namespace
}  // namespace tidemark::tests
