#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "gateway/listener.h"
#include "tests/cluster.h"
#include "tests/gateway/raw_client.h"
#include "wire/message.h"

namespace tidemark::gateway {
namespace {

using testing::HasSubstr;

// A database where row `id` of public.t begins `id` seconds after the start of 2026.
constexpr const char* kStandIns = R"(
CREATE SCHEMA tidemark;
CREATE SEQUENCE tidemark.settled;
CREATE TABLE public.t (id integer PRIMARY KEY, v text);
INSERT INTO public.t SELECT i, 'row ' || i FROM generate_series(1, 9) i;
CREATE TABLE public.plain (id integer);
CREATE FUNCTION tidemark.resolve(names text[], functions text[])
RETURNS TABLE (ord integer, kind text, schema_name text, relation_name text,
               volatile_function text) LANGUAGE sql STABLE AS $$
  SELECT n.ord::integer,
         CASE WHEN c.oid IS NULL THEN 'missing' WHEN c.relkind = 'v' THEN 'view'
              WHEN c.relname LIKE 'plain%' THEN 'plain' ELSE 'versioned' END,
         s.nspname::text, c.relname::text,
         (SELECT f FROM unnest(functions[n.ord]::text[]) f
            JOIN pg_proc p ON p.proname = trim('"' FROM f) AND p.provolatile = 'v' LIMIT 1)
    FROM unnest(names) WITH ORDINALITY n(name, ord)
    LEFT JOIN pg_class c ON c.oid = to_regclass(n.name)
    LEFT JOIN pg_namespace s ON s.oid = c.relnamespace
   ORDER BY n.ord $$;
CREATE FUNCTION tidemark.resolve_pinned(names text[], functions text[], calls text[])
RETURNS TABLE (ord integer, kind text, schema_name text, relation_name text,
               volatile_function text, pinned_tx bigint, cap_tx bigint) LANGUAGE sql STABLE AS $$
  SELECT 0, '', '', '', '', NULL::bigint, NULL::bigint
   UNION ALL
  SELECT r.*, NULL, NULL FROM tidemark.resolve(names, functions) r $$;
CREATE FUNCTION tidemark.await_pin() RETURNS text LANGUAGE sql STABLE AS $$ SELECT '' $$;
CREATE FUNCTION tidemark.settle() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT nextval('tidemark.settled') $$;
CREATE FUNCTION tidemark.tx_at(relation regclass, instant timestamptz) RETURNS bigint
  LANGUAGE sql IMMUTABLE AS
  $$ SELECT extract(epoch FROM instant - '2026-01-01 00:00+00'::timestamptz)::bigint $$;
CREATE FUNCTION tidemark.as_of_tx(t anyelement, x bigint) RETURNS SETOF anyelement
  LANGUAGE plpgsql STABLE AS $$
  BEGIN RETURN QUERY EXECUTE format('SELECT * FROM %s WHERE id <= $1', pg_typeof(t)) USING x; END $$;
CREATE FUNCTION tidemark.as_of_tx_once(t anyelement, x bigint) RETURNS SETOF anyelement
  LANGUAGE sql STABLE AS $$ SELECT * FROM tidemark.as_of_tx(t, x) $$;
)";

// A gateway before a database of the shared cluster.
class Gateway : public testing::Test {
 protected:
  void SetUp() override {
    name_ = fmt::format("gateway_{}", ++count_);
    cluster_.CreateDatabase(name_);
    cluster_.Connect(name_).Execute(kStandIns);
  }
  void TearDown() override { Stop(); }

  /// Starts it at the first use.
  Listener& listener() {
    if (!listener_) {
      options_.listen_port = 0;
      if (options_.store.host.starts_with("/var")) options_.store.host = cluster_.host();
      options_.on_log = [](std::string_view) {};
      listener_ = std::make_unique<Listener>(options_);
      thread_ = std::jthread([this](std::stop_token stop) { listener_->Run(stop); });
    }
    return *listener_;
  }
  void Stop() {
    thread_ = {};
    listener_.reset();
  }

  std::string Dsn(std::string_view more = {}) {
    return fmt::format("host=127.0.0.1 port={} dbname={} user=postgres sslmode=prefer {}",
                       listener().port(), name_, more);
  }
  pg::Connection Connect(std::string_view more = {}) {
    return pg::Connection::Open({.dsn = Dsn(more)},
                                base::Deadline::After(std::chrono::seconds(10)));
  }
  base::Error ConnectError(std::string_view more = {}) {
    try {
      Connect(more);
    } catch (const base::Error& error) {
      return error;
    }
    return {base::SqlState("00000"), "connected"};
  }
  /// Waits at the server until `sql` gives true, ten seconds at most.
  bool Becomes(const std::string& sql) {
    auto direct = cluster_.Connect(name_);
    for (int i = 0; i < 200; ++i) {
      if (direct.Value(sql) == "t") return true;
      direct.Execute("SELECT pg_sleep(0.05)");
    }
    return false;
  }
  std::string Psql(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {(tests::ServerBinaries() / "psql").string(), "-XAtq", "-v",
                                         "ON_ERROR_STOP=1", "-d", Dsn()});
    std::string output;
    tests::Run(arguments, &output);
    return output;
  }

  static int count_;
  tests::Cluster& cluster_ = tests::Cluster::Shared();
  std::string name_;
  Options options_;

 private:
  std::unique_ptr<Listener> listener_;
  std::jthread thread_;
};

int Gateway::count_ = 0;

base::Error ErrorOf(pg::Connection& connection, const std::string& sql) {
  try {
    connection.Execute(sql);
  } catch (const base::Error& error) {
    return error;
  }
  return {base::SqlState("00000"), "no error"};
}

TEST_F(Gateway, OrdinaryWorkPasses) {
  auto client = Connect();
  EXPECT_EQ(client.Value("SELECT count(*) FROM t"), "9");
  EXPECT_EQ(client.Value("SELECT v FROM t WHERE id = $1", {"3"}), "row 3");
  client.Execute("BEGIN; CREATE TEMP TABLE x AS SELECT 1 AS a; COMMIT");
  EXPECT_EQ(client.Value("SELECT a FROM x"), "1");
  EXPECT_EQ(ErrorOf(client, "SELECT nope FROM t").state(), base::SqlState("42703"));
  EXPECT_EQ(client.parameter("server_encoding"), "UTF8");
}

TEST_F(Gateway, ReadsAsOfLiteralsParametersAndNow) {
  auto client = Connect();
  const std::string from = "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF ";
  EXPECT_EQ(client.Value(from + "'2026-01-01 00:00:03+00'"), "3");
  EXPECT_EQ(client.Value(from + "$1", {"2026-01-01 00:00:05+00"}), "5");
  EXPECT_EQ(client.Execute(from + "now() - interval '1 day'").str(0, 0), "9");
  EXPECT_EQ(client.ExecutePrepared(from + "$1", {"2026-01-01 00:00:04+00"}).str(0, 0), "4");
  EXPECT_EQ(client.ExecutePrepared(from + "$1", {"2026-01-01 00:00:06+00"}).str(0, 0), "6");
}

TEST_F(Gateway, SettlesBeforeStatementsWithAParameterOnly) {
  auto client = Connect();
  const std::string from = "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF ";
  client.Execute(from + "'2026-01-01 00:00:03+00'");
  EXPECT_EQ(client.Value("SELECT is_called FROM tidemark.settled"), "f");
  client.ExecutePrepared(from + "$1", {"2026-01-01 00:00:04+00"});
  client.ExecutePrepared(from + "$1", {"2026-01-01 00:00:04+00"});
  EXPECT_EQ(client.Value("SELECT last_value FROM tidemark.settled"), "2");
  EXPECT_EQ(
      client.Value("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'tidemark$%'"),
      "0");
}

TEST_F(Gateway, NamesResolveInTheClientsOwnSession) {
  auto client = Connect();
  client.Execute("CREATE SCHEMA other; CREATE TABLE other.t (id integer); SET search_path = other");
  client.Execute("INSERT INTO other.t VALUES (1)");
  EXPECT_EQ(client.Value("SELECT count(*) FROM t FOR SYSTEM_TIME AS OF '2026-01-01 00:00:03+00'"),
            "1");
  client.Execute("BEGIN; CREATE TEMP TABLE plain_x (id integer)");
  const auto error = ErrorOf(client, "SELECT * FROM plain_x FOR SYSTEM_TIME AS OF '2026-01-02'");
  EXPECT_EQ(error.state(), base::kWrongObjectType);
  EXPECT_EQ(ErrorOf(client, "SELECT 1").state(), base::SqlState("25P02"));
  EXPECT_EQ(ErrorOf(client, "SELECT * FROM t FOR SYSTEM_TIME AS OF '2026-01-02'").state(),
            base::SqlState("25P02"));
  client.Execute("ROLLBACK");
  EXPECT_EQ(client.Value("SELECT 1"), "1");
}

TEST_F(Gateway, ErrorsAreSaidOfTheClientsText) {
  RawClient client(listener().port());
  client.Start(name_);
  const std::string as_of = "SELECT 'é', * FROM t FOR SYSTEM_TIME AS OF ";
  struct Case {
    std::string sql, state, position;
  };
  for (const auto& [sql, state, position] : {
           Case{as_of + "'2026-01-01' WHERE nope", "42703", "63"},
           Case{as_of + "7", "42804", "44"},
           Case{as_of + "now() - 'x'", "22007", "52"},
           Case{as_of + "now() - nope()", "42883", "52"},
           Case{as_of + "CURRENT_DATE + 1.5", "42883", "57"},
           Case{as_of + "clock_timestamp()", "42P17", "44"},
           Case{as_of, "42601", "44"},
           Case{"SELECT * FROM plain FOR SYSTEM_TIME ALL", "42809", "15"},
           Case{"SELECT * FROM no.t FOR SYSTEM_TIME ALL", "42P01", "15"},
           Case{"SELECT nope", "42703", "8"},
       }) {
    const auto error = client.ErrorOf(sql);
    EXPECT_EQ(error.Find('C'), state) << sql << error.Find('M');
    EXPECT_EQ(error.Find('P'), position) << sql;
  }
  EXPECT_EQ(client.ErrorOf(as_of + "7").Find('M'),
            "FOR SYSTEM_TIME instant must be of type timestamp with time zone, not integer");
  EXPECT_EQ(client.ErrorOf("SELECT 1").fields.size(), 0u);
}

TEST_F(Gateway, DatabasesThatAreNotTidemarksGetPostgresqlsOwnError) {
  auto client = Connect("dbname=postgres");
  const std::string text = "SELECT * FROM pg_class FOR SYSTEM_TIME AS OF '2026-01-01'";
  auto direct = cluster_.Connect();
  EXPECT_EQ(ErrorOf(client, text).Full(), ErrorOf(direct, text).Full());
}

TEST_F(Gateway, CopyFlowsBothWays) {
  const std::string many = "SELECT i, repeat('x', 100) FROM generate_series(1, 200000) i";
  std::string rows = Psql({"-c", "COPY (" + many + ") TO STDOUT"});
  EXPECT_EQ(std::ranges::count(rows, '\n'), 200000);
  const auto file = cluster_.directory() / "gateway_copy.csv";
  EXPECT_EQ(Psql({"-c", "CREATE TABLE c (i integer, x text)", "-c",
                  "\\copy (" + many + ") TO '" + file.string() + "'", "-c",
                  "\\copy c FROM '" + file.string() + "'", "-c", "SELECT count(*) FROM c"}),
            "200000\n");
  EXPECT_THAT(Psql({"-c", "\\copy t FROM '" + file.string() + "'"}), HasSubstr("ERROR"));
}

TEST_F(Gateway, PipelinesOfManyStatementsStayInStep) {
  const auto script = cluster_.directory() / "pipeline.sql";
  std::ofstream(script) << R"(\startpipeline
SELECT 1;
SELECT count(*) FROM t FOR SYSTEM_TIME AS OF '2026-01-01 00:00:03+00';
SELECT count(*) FROM t FOR SYSTEM_TIME AS OF :at::timestamptz;
SELECT 2;
\endpipeline
)";
  for (const char* mode : {"extended", "prepared"}) {
    std::string output;
    const int code = tests::Run(
        {(tests::ServerBinaries() / "pgbench").string(), "-n", "-M", mode, "-c", "4", "-j", "2",
         "-t", "50", "-D", "at=2026-01-01 00:00:05+00", "-f", script.string(), Dsn()},
        &output);
    EXPECT_EQ(code, 0) << output;
    EXPECT_THAT(output, HasSubstr("200/200"));
  }
}

TEST_F(Gateway, ValuesOfAHundredMegabytesPassBothWays) {
  auto client = Connect();
  const std::string big(100'000'000, 'x');
  EXPECT_EQ(client.Value("SELECT length($1)", {big}), "100000000");
  EXPECT_EQ(client.Value("SELECT repeat('x', 100000000)").size(), big.size());
}

TEST_F(Gateway, CancelReachesTheStatement) {
  auto client = Connect();
  client.SetLimits(std::chrono::milliseconds(300), {});
  const auto error = ErrorOf(client, "SELECT pg_sleep(60)");
  EXPECT_EQ(error.state(), base::kQueryCanceled);
  client.SetLimits(std::chrono::seconds(10), {});
  EXPECT_TRUE(
      Becomes("SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE '%sleep(60)%'"
              " AND state = 'active' AND pid <> pg_backend_pid()"));
}

TEST_F(Gateway, NotificationsReachAnIdleClient) {
  std::string output = Psql({"-c", "LISTEN news", "-c", "NOTIFY news, 'hello'", "-c", "SELECT 1"});
  EXPECT_THAT(output, HasSubstr("\"news\" with payload \"hello\""));
}

TEST_F(Gateway, ClosingTheClientClosesTheStoreConnection) {
  const std::string none =
      "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = "
      "current_database() AND pid <> pg_backend_pid()";
  {
    auto client = Connect();
    client.Execute("BEGIN");
    EXPECT_EQ(listener().sessions(), 1u);
  }
  EXPECT_TRUE(Becomes(none));
}

TEST_F(Gateway, ClosingTheStoreConnectionClosesTheClient) {
  auto client = Connect();
  auto direct = cluster_.Connect(name_);
  direct.Execute("SELECT pg_terminate_backend($1)", {std::to_string(client.server_pid())});
  const auto error = ErrorOf(client, "SELECT 1");
  EXPECT_TRUE(error.IsConnectionLoss()) << error.Full();
  EXPECT_EQ(Connect().Value("SELECT 1"), "1");
}

TEST_F(Gateway, AnUnreachableStoreIsSaidSo) {
  options_.store.host = "/nowhere";
  EXPECT_THAT(ConnectError().message(), HasSubstr("could not connect to the store"));
}

TEST_F(Gateway, OneSessionTooManyIsRefused) {
  options_.sessions_max = 2;
  {
    auto one = Connect(), two = Connect();
    EXPECT_THAT(ConnectError().message(), HasSubstr("too many clients"));
  }
  while (listener().sessions() > 0) std::this_thread::yield();
  EXPECT_EQ(Connect().Value("SELECT 1"), "1");
}

TEST_F(Gateway, ReplicationIsRefused) {
  EXPECT_THAT(ConnectError("replication=database").message(), HasSubstr("replication"));
}

TEST_F(Gateway, WrongDatabasesAndStartupOptionsAreTheStoresMatter) {
  EXPECT_THAT(ConnectError("dbname=nowhere").message(), HasSubstr("does not exist"));
  EXPECT_THAT(ConnectError("options='-c nope=1'").message(), HasSubstr("nope"));
  EXPECT_EQ(Connect("options='-c search_path=a --work_mem=5MB -c statement_timeout=5s'")
                .Value("SHOW statement_timeout"),
            "5s");
}

std::string PlainConversation() {
  std::string bytes;
  wire::Query{"SELECT 1; SELECT 'x'"}.Write(bytes);
  wire::Parse{"s", "SELECT $1::text", {}}.Write(bytes);
  wire::Naming{'S', "s"}.WriteDescribe(bytes);
  for (int i = 0; i < 1000; ++i) {
    wire::Bind{"", "s", {"value"}}.Write(bytes);
    wire::Execute{"", 0}.Write(bytes);
  }
  wire::WriteMessage(bytes, wire::kSync);
  wire::Parse{"", "SELECT 1/0", {}}.Write(bytes);
  wire::Bind{"", "", {}}.Write(bytes);
  wire::Execute{"", 0}.Write(bytes);
  wire::Query{"SELECT 'skipped'"}.Write(bytes);
  wire::WriteMessage(bytes, wire::kSync);
  wire::Query{"CREATE TEMP TABLE x (a integer); COPY x FROM STDIN; SELECT a::bigint FROM x"}.Write(
      bytes);
  wire::WriteMessage(bytes, wire::kCopyData, "1\n2\n");
  wire::WriteMessage(bytes, wire::kCopyDone);
  wire::Query{"garbage"}.Write(bytes);
  return bytes;
}

TEST_F(Gateway, AHalfClosedPlainConversationIsAnsweredByteForByte) {
  RawClient through(listener().port());
  RawClient direct(cluster_);
  for (RawClient* client : {&through, &direct}) {
    client->Start(name_);
    client->Send(PlainConversation());
    client->FinishSending();
  }
  const std::string answers = through.ReadToEnd();
  EXPECT_GT(answers.size(), 20'000u);
  EXPECT_TRUE(answers == direct.ReadToEnd());
}

TEST_F(Gateway, ATemporalPipelineIsAnsweredAsItsRewritingWouldBe) {
  const auto conversation = [](std::string_view reference) {
    const std::string text = fmt::format("SELECT id FROM {}", reference);
    std::string bytes;
    wire::Parse{"", "SELECT 1", {}}.Write(bytes);
    wire::Parse{"s", text, {}}.Write(bytes);
    wire::Naming{'S', "s"}.WriteDescribe(bytes);
    for (int i = 0; i < 3; ++i) {
      wire::Bind{"", "s", {fmt::format("2026-01-01 00:00:0{}+00", i + 1)}}.Write(bytes);
      wire::Naming{'P', ""}.WriteDescribe(bytes);
      wire::Execute{"", 0}.Write(bytes);
    }
    wire::WriteMessage(bytes, wire::kSync);
    wire::Bind{"", "s", {"no instant"}}.Write(bytes);
    wire::Execute{"", 0}.Write(bytes);
    wire::WriteMessage(bytes, wire::kSync);
    wire::Parse{"", text, {}}.Write(bytes);
    wire::Bind{"", "", {"2026-01-01 00:00:01+00"}}.Write(bytes);
    wire::Execute{"", 0}.Write(bytes);
    wire::WriteMessage(bytes, wire::kSync);
    return bytes;
  };
  RawClient through(listener().port());
  through.Start(name_);
  through.Send(conversation("t FOR SYSTEM_TIME AS OF $1"));
  through.FinishSending();
  RawClient direct(cluster_);
  direct.Start(name_);
  direct.Send(
      conversation("tidemark.as_of_tx_once(NULL::public.t,"
                   " tidemark.tx_at('public.t'::regclass, $1)) AS t"));
  direct.FinishSending();
  EXPECT_EQ(through.ReadToEnd(), direct.ReadToEnd());
}

TEST_F(Gateway, AClientThatSaysNothingIsClosedInTime) {
  options_.startup_timeout = std::chrono::milliseconds(100);
  RawClient client(listener().port());
  EXPECT_EQ(client.Read(), "");
}

TEST_F(Gateway, StopTellsClientsAndReturnsInTime) {
  RawClient idle(listener().port()), silent(listener().port());
  idle.Start(name_);
  auto busy = Connect();
  const auto began = std::chrono::steady_clock::now();
  Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_THAT(idle.Read(), HasSubstr("57P01"));
  EXPECT_EQ(idle.Read(), "");
  EXPECT_EQ(silent.Read(), "");
  EXPECT_TRUE(ErrorOf(busy, "SELECT 1").IsConnectionLoss());
}

TEST_F(Gateway, AnAddressInUseIsRefused) {
  Options options;
  options.listen_port = listener().port();
  EXPECT_THROW(Listener second(options), base::Error);
}

}  // namespace
}  // namespace tidemark::gateway
