#include "tests/gateway/time_travel_fixture.h"

#include <fmt/format.h>

namespace tidemark::tests {

GatewayThread::GatewayThread() {
  gateway::Options options;
  options.listen_port = 0;
  options.store.host = Cluster::Shared().host();
  options.on_log = [](std::string_view) {};
  listener_ = std::make_unique<gateway::Listener>(options);
  thread_ = std::jthread([this](std::stop_token stop) { listener_->Run(stop); });
}

std::string GatewayThread::Dsn(const std::string& database, const std::string& user) const {
  return fmt::format("host=127.0.0.1 port={} dbname={} user={}", port(), database, user);
}

std::string Mirror::Newest() {
  return store_->Value("SELECT system_time FROM tidemark.basis ORDER BY number DESC LIMIT 1");
}

std::unique_ptr<Mirror> TimeTravelFixture::mirror_;
std::unique_ptr<GatewayThread> TimeTravelFixture::gateway_;
std::vector<std::string> TimeTravelFixture::bases_, TimeTravelFixture::source_times_,
    TimeTravelFixture::positions_;

void TimeTravelFixture::SetUpTestSuite() {
  for (auto* list : {&bases_, &source_times_, &positions_}) list->clear();
  mirror_ = std::make_unique<Mirror>();
  mirror_->SetUp();
  mirror_->source_->Execute(R"(
CREATE TABLE t (id int PRIMARY KEY, n int, note text);
INSERT INTO t VALUES (1, 0, 'a'), (2, 7, 'constant');
CREATE SCHEMA other;
CREATE TABLE other.t (id int PRIMARY KEY, n int);
INSERT INTO other.t VALUES (1, 100);
CREATE SCHEMA "Größe, ""S""";
CREATE TABLE "Größe, ""S"""."Täble, ""1"" €" (id int PRIMARY KEY, "Wert, €" int);
INSERT INTO "Größe, ""S"""."Täble, ""1"" €" VALUES (1, 5);
CREATE TABLE aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123 (id int PRIMARY KEY);
INSERT INTO aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123 VALUES (63);
CREATE TABLE periods (id int PRIMARY KEY, system_from int, tx_to text);
INSERT INTO periods VALUES (1, 2, 'x');
CREATE TABLE instants (id int PRIMARY KEY, at timestamptz);
)");
  mirror_->Start();
  mirror_->CatchUp();
  auto& store = *mirror_->store_;
  for (int n = 0; n < 4; ++n) {
    if (n > 0) {
      mirror_->source_->Execute(fmt::format("UPDATE t SET n = {} WHERE id = 1", n));
      mirror_->CatchUp();
    }
    bases_.push_back(mirror_->Newest());
    positions_.push_back(store.Value("SELECT lsn FROM tidemark.resume"));
    source_times_.push_back(store.Value("SELECT max(source_time) FROM tidemark.tx"));
  }
  for (int n = 0; n < 4; ++n) {
    mirror_->source_->Execute("INSERT INTO instants VALUES ($1, $2)",
                              {std::to_string(n), bases_[static_cast<size_t>(n)]});
  }
  mirror_->CatchUp();
  store.Execute(R"(
CREATE TABLE plain (id int);
CREATE VIEW a_view AS SELECT * FROM t;
DO $$ BEGIN
  CREATE ROLE gateway_reader LOGIN IN ROLE tidemark_reader;
  ALTER ROLE gateway_reader SET default_transaction_read_only = on;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
)");
  gateway_ = std::make_unique<GatewayThread>();
}

void TimeTravelFixture::TearDownTestSuite() {
  gateway_.reset();
  mirror_->TearDown();
  mirror_.reset();
}

std::string TimeTravelFixture::InstantOf(int n, int microseconds) {
  return mirror_->store_->Value(
      "SELECT $1::timestamptz + make_interval(secs => $2::int / 1e6::float8)",
      {bases_.at(static_cast<size_t>(n)), std::to_string(microseconds)});
}
std::string TimeTravelFixture::At(int n, int microseconds) {
  return "'" + InstantOf(n, microseconds) + "'";
}
std::string TimeTravelFixture::SourceAt(int n) {
  return "'" + source_times_.at(static_cast<size_t>(n)) + "'";
}
std::string TimeTravelFixture::Position(int n) {
  return "'" + positions_.at(static_cast<size_t>(n)) + "'";
}

SqlClient TimeTravelFixture::Client(const std::string& user) {
  return SqlClient(gateway_->Dsn(mirror_->database(), user));
}
SqlClient TimeTravelFixture::Direct() {
  return SqlClient(Cluster::Shared().Dsn(mirror_->database()));
}

Answer TimeTravelFixture::Both(SqlClient& client, const std::string& sql) {
  const Answer simple = client.Simple(sql), extended = client.Extended(sql);
  EXPECT_EQ(simple.Outcome(), extended.Outcome()) << sql;
  EXPECT_EQ(simple.rows, extended.rows) << sql;
  EXPECT_EQ(simple.columns, extended.columns) << sql;
  EXPECT_EQ(simple.tag, extended.tag) << sql;
  return simple;
}

std::string TimeTravelFixture::RowsOf(SqlClient& client, const std::string& sql) {
  const Answer answer = Both(client, sql);
  EXPECT_EQ(answer.Outcome(), "ok") << sql;
  return answer.rows;
}

}  // namespace tidemark::tests
