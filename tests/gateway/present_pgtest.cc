// The present, asked for through a gateway while the source is written to all the time: in READ
// COMMITTED it is never refused with 40001, and no answer changes afterwards. And what happens to
// sessions that were there before the mirror.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "temporal/store.h"
#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using std::chrono::steady_clock;

class ThePresent : public ::testing::Test {
 protected:
  void SetUp() override {
    mirror_.SetUp();
    mirror_.source_->Execute(
        "CREATE TABLE c (id int PRIMARY KEY, n bigint); INSERT INTO c VALUES (1, 0)");
    mirror_.Start();
    mirror_.CatchUp();
    database_ = mirror_.database();
  }
  void TearDown() override { mirror_.TearDown(); }
  SqlClient Client() { return SqlClient(gateway_.Dsn(database_)); }

  /// Commits one update after the other until it is stopped.
  std::jthread Writer() {
    return std::jthread([this](std::stop_token stop) {
      auto source = Cluster::Shared().Connect(mirror_.source_->Value("SELECT current_database()"));
      while (!stop.stop_requested()) source.Execute("UPDATE c SET n = n + 1");
    });
  }

  Mirror mirror_;
  GatewayThread gateway_;
  std::string database_;
};

/// Milliseconds since 1970 with all six digits behind the point, by this process's clock.
std::string ClientsClock() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const time_t seconds = static_cast<time_t>(now / 1000000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{}.{:06}+00", text, now % 1000000);
}

/// One way of asking for the present: the instant and the counter then, or the error.
struct Way {
  std::string name;
  std::function<std::pair<std::string, Answer>(SqlClient&)> ask;
};

std::vector<Way> WaysOfNamingTheInstant() {
  const std::string from = "SELECT n FROM c FOR SYSTEM_TIME AS OF ";
  const auto in_transaction = [from](const std::string& begin, bool simple) {
    return [=](SqlClient& client) {
      client.Simple(begin);
      const std::string now = client.Simple("SELECT now()").rows;
      const Answer answer =
          simple ? client.Simple(from + "now()") : client.Extended(from + "now()");
      client.Simple("COMMIT");
      return std::pair(now.substr(0, now.find('\n')), answer);
    };
  };
  return {
      {"literal, simple",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Simple(from + "'" + at + "'"));
       }},
      {"literal, extended",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Extended(from + "'" + at + "'"));
       }},
      {"parameter",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Extended(from + "$1", {at}));
       }},
      {"prepared parameter",
       [from](SqlClient& client) {
         client.Prepare("s", from + "$1");
         const auto at = ClientsClock();
         return std::pair(at, client.Run("s", {at}));
       }},
      {"cursor over a literal",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         client.Simple("BEGIN");
         Answer answer = client.Simple("DECLARE x CURSOR FOR " + from + "'" + at + "'");
         if (answer.state.empty()) answer = client.Simple("FETCH x");
         client.Simple("COMMIT");
         return std::pair(at, answer);
       }},
      {"cursor over a literal, extended",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         client.Simple("BEGIN");
         Answer answer = client.Extended("DECLARE x CURSOR FOR " + from + "'" + at + "'");
         if (answer.state.empty()) answer = client.Extended("FETCH x");
         client.Simple("COMMIT");
         return std::pair(at, answer);
       }},
      {"COPY of a literal",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Simple("COPY (" + from + "'" + at + "') TO STDOUT"));
       }},
      {"EXECUTE with a literal",
       [from](SqlClient& client) {
         client.Simple("PREPARE e AS " + from + "$1");
         const auto at = ClientsClock();
         return std::pair(at, client.Simple("EXECUTE e ('" + at + "')"));
       }},
      {"EXECUTE with a literal, extended",
       [from](SqlClient& client) {
         client.Simple("PREPARE e AS " + from + "$1");
         const auto at = ClientsClock();
         return std::pair(at, client.Extended("EXECUTE e ('" + at + "')"));
       }},
      {"in a string",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Simple("SELECT 1; " + from + "'" + at + "'"));
       }},
      {"now() in a transaction", in_transaction("BEGIN", true)},
      {"now() in a transaction, extended", in_transaction("BEGIN", false)},
      {"range",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(at, client.Simple("SELECT n FROM c FOR SYSTEM_TIME BETWEEN '" + at +
                                            "' AND '" + at + "'"));
       }},
      {"range of parameters",
       [from](SqlClient& client) {
         const auto at = ClientsClock();
         return std::pair(
             at, client.Extended("SELECT n FROM c FOR SYSTEM_TIME BETWEEN $1 AND $1", {at}));
       }},
  };
}

/// Ways whose instant only the server knows: they must not be refused, nor go backwards.
std::vector<Way> WaysOfSayingNow() {
  const std::string from = "SELECT n FROM c FOR SYSTEM_TIME AS OF ";
  const auto simple = [](const std::string& sql) {
    return [sql](SqlClient& client) { return std::pair(std::string(), client.Simple(sql)); };
  };
  const auto extended = [](const std::string& sql) {
    return [sql](SqlClient& client) { return std::pair(std::string(), client.Extended(sql)); };
  };
  return {
      {"now()", simple(from + "now()")},
      {"now(), extended", extended(from + "now()")},
      {"'now'", simple(from + "'now'")},
      {"statement_timestamp()", simple(from + "statement_timestamp()")},
      {"COPY of now()", simple("COPY (" + from + "now()) TO STDOUT")},
      {"COPY of now(), extended", extended("COPY (" + from + "now()) TO STDOUT")},
      {"now() in a string", simple("SELECT 1; " + from + "now()")},
      {"now() twice in a string",
       simple(from + "now(); SELECT pg_sleep(0.002); " + from + "statement_timestamp()")},
      {"string with BEGIN", simple("BEGIN; " + from + "now(); COMMIT; " + from + "now()")},
      {"EXECUTE of now()",
       [from](SqlClient& client) {
         client.Simple("PREPARE now AS " + from + "now()");
         return std::pair(std::string(), client.Simple("EXECUTE now"));
       }},
      {"EXECUTE of now(), extended",
       [from](SqlClient& client) {
         client.Simple("PREPARE now AS " + from + "now()");
         return std::pair(std::string(), client.Extended("EXECUTE now"));
       }},
      {"prepared now()",
       [from](SqlClient& client) {
         client.Prepare("protocol", from + "now()");
         return std::pair(std::string(), client.Run("protocol"));
       }},
      {"now() prepared in SQL, run by the protocol",
       [from](SqlClient& client) {
         client.Simple("PREPARE now AS " + from + "now()");
         return std::pair(std::string(), client.Run("now"));
       }},
      {"now() prepared by the protocol, run in SQL",
       [from](SqlClient& client) {
         client.Prepare("protocol", from + "now()");
         return std::pair(std::string(), client.Simple("EXECUTE protocol"));
       }},
      {"EXPLAIN ANALYZE",
       [from](SqlClient& client) {
         auto answer = client.Simple("EXPLAIN ANALYZE " + from + "now()");
         answer.rows = "-1\n";
         return std::pair(std::string(), answer);
       }},
  };
}

TEST_F(ThePresent, IsNeverRefusedAndNeverAnsweredTwoWays) {
  const auto named = WaysOfNamingTheInstant(), now = WaysOfSayingNow();
  std::mutex mutex;
  std::map<std::string, int> answered, refused;
  std::vector<std::pair<std::string, std::string>> answers;  // instant, rows
  const auto until = steady_clock::now() + std::chrono::seconds(8);
  const auto reader = [&](size_t first) {
    auto client = Client();
    client.Simple("SET timezone = 'UTC'");
    for (size_t i = first; steady_clock::now() < until; ++i) {
      const bool named_instant = i % 2 == 0;
      const Way& way = named_instant ? named[i / 2 % named.size()] : now[i / 2 % now.size()];
      const auto seen = client.Simple("SELECT n FROM c");
      const auto [instant, answer] = way.ask(client);
      const std::lock_guard lock(mutex);
      if (!answer.state.empty()) {
        EXPECT_EQ(answer.state, "40001") << way.name << ": " << answer.Outcome();
        ++refused[way.name];
        continue;
      }
      ++answered[way.name];
      if (named_instant) {
        answers.emplace_back(instant, answer.rows);
      } else if (answer.rows != "-1\n" && way.name != "COPY of now()") {
        EXPECT_GE(std::stoll("0" + answer.rows), std::stoll("0" + seen.rows)) << way.name;
      }
    }
  };
  {
    auto writer = Writer();
    std::vector<std::jthread> readers;
    for (size_t i = 0; i < 3; ++i) readers.emplace_back([&, i] { reader(i * 7); });
  }
  EXPECT_EQ(answered.size(), named.size() + now.size());
  for (const auto& [name, times] : refused) {
    ADD_FAILURE() << name << " was refused " << times << " times, answered " << answered[name];
  }
  mirror_.CatchUp();
  auto client = Client();
  size_t different = 0;
  for (const auto& [instant, rows] : answers) {
    const auto again = client.Extended("SELECT n FROM c FOR SYSTEM_TIME AS OF $1", {instant}).rows;
    if (again != rows && ++different < 5) {
      EXPECT_EQ(again, rows) << instant;
    }
  }
  EXPECT_EQ(different, 0u) << "of " << answers.size();
  EXPECT_GT(answers.size(), 200u);
}

// A snapshot that is older than the instant leaves rows out: then 40001, never a wrong answer.
TEST_F(ThePresent, AnOldSnapshotRefusesANewerInstantWhateverThePlan) {
  auto client = Client();
  client.Simple("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(client.Simple("SELECT n FROM c").rows, "0\n");
  mirror_.source_->Execute("UPDATE c SET n = 1");
  mirror_.CatchUp();
  const std::string at = ClientsClock();
  const std::string from = "SELECT n FROM c FOR SYSTEM_TIME AS OF ";
  client.Simple("SAVEPOINT s");
  for (const auto& sql : {from + "'" + at + "'", "DECLARE x CURSOR FOR " + from + "'" + at + "'",
                          "COPY (" + from + "'" + at + "') TO STDOUT"}) {
    EXPECT_EQ(client.Simple(sql).state, "40001") << sql;
    client.Simple("ROLLBACK TO s");
  }
  EXPECT_EQ(client.Extended(from + "$1", {at}).state, "40001");
  client.Simple("ROLLBACK TO s");
  EXPECT_EQ(client.Simple("SELECT n FROM c FOR SYSTEM_TIME ALL").rows, "0\n");
  EXPECT_EQ(client.Simple("SELECT n FROM c FOR SYSTEM_TIME FROM '-infinity' TO 'infinity'").rows,
            "0\n");
  client.Simple("COMMIT");
  EXPECT_EQ(client.Simple(from + "'" + at + "'").rows, "1\n");

  // A function's queries keep the snapshot of the statement around it, and plan later.
  mirror_.store_->Execute(R"(
CREATE FUNCTION later(at text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM pg_sleep(0.5);
  RETURN (SELECT n FROM tidemark.as_of(NULL::c, at::timestamptz));
END $$;
CREATE FUNCTION later_literal() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE r bigint;
BEGIN
  PERFORM pg_sleep(0.5);
  EXECUTE format('SELECT n FROM tidemark.as_of(NULL::c, %L)', clock_timestamp()) INTO r;
  RETURN r;
END $$)");
  for (const std::string sql :
       {"SELECT later(clock_timestamp()::text)", "SELECT later_literal()"}) {
    std::jthread update([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      mirror_.source_->Execute("UPDATE c SET n = n + 1");
    });
    const auto answer = client.Simple(sql);
    if (sql.ends_with("literal()")) {
      EXPECT_EQ(answer.state, "40001") << answer.rows;
    } else {
      EXPECT_EQ(answer.Outcome(), "ok");
    }
  }
}

TEST_F(ThePresent, SessionsFromBeforeATableWasMirroredSeeItAppear) {
  Mirror second;
  second.SetUp();
  second.source_->Execute(
      "CREATE TABLE u (id int PRIMARY KEY, n int); INSERT INTO u SELECT i, 2 FROM "
      "generate_series(1, 300000) i");
  second.Start();
  const auto deadline = base::Deadline::After(20s);
  while (!deadline.passed() && !temporal::IsCurrent(*second.store_)) {
    std::this_thread::sleep_for(1ms);
  }
  SqlClient client(gateway_.Dsn(second.database()));
  const std::string sql = "SELECT n FROM u FOR SYSTEM_TIME AS OF now() WHERE id = 1";
  ASSERT_EQ(client.Simple(sql).Outcome(), "42P01 15 relation \"u\" does not exist");
  EXPECT_EQ(client.Prepare("s", sql).Outcome(), "42P01 15 relation \"u\" does not exist");
  client.Simple(
      "CREATE TEMP TABLE v (n int); CREATE FUNCTION pg_temp.f() RETURNS bigint LANGUAGE "
      "plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM u); END $$");
  EXPECT_EQ(client.Simple("SELECT pg_temp.f()").state, "42P01");
  second.CatchUp();
  EXPECT_EQ(client.Simple(sql).rows, "2\n");
  EXPECT_EQ(client.Prepare("s", sql).Outcome(), "ok");
  EXPECT_EQ(client.Run("s").rows, "2\n");
  EXPECT_EQ(client.Simple("SELECT pg_temp.f()").rows, "300000\n");
  second.TearDown();
}

}  // namespace
}  // namespace tidemark::tests
