#include "tests/gateway/foreign_fixture.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace tidemark::tests {

std::unique_ptr<Mirror> ForeignFixture::mirror_;
std::unique_ptr<GatewayThread> ForeignFixture::gateway_;
std::unique_ptr<Cluster> ForeignFixture::other_;

void ForeignFixture::SetUpTestSuite() {
  mirror_ = std::make_unique<Mirror>();
  mirror_->SetUp();
  mirror_->source_->Execute(R"(
CREATE TABLE big (id int PRIMARY KEY, k int NOT NULL, v text);
INSERT INTO big SELECT i, i % 100, md5(i::text) FROM generate_series(1, 30000) i;
CREATE TABLE small (id int PRIMARY KEY, name varchar(20) NOT NULL COLLATE "C", at timestamptz(3),
                    amount numeric(12, 2), tags text[], raw bytea, flag boolean, j jsonb);
INSERT INTO small
SELECT i, 'n' || i, '2026-01-01 00:00+00', i * 1.25, ARRAY['a', NULL], '\x00ff', i % 2 = 0, '{"a": 1}'
FROM generate_series(0, 99) i;
CREATE TABLE one (id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE two (id int PRIMARY KEY, n int NOT NULL);
INSERT INTO one VALUES (1, 0);
INSERT INTO two VALUES (1, 0);
)");
  mirror_->Start();
  mirror_->CatchUp();
  mirror_->store_->Execute(R"(
DO $$ BEGIN
  CREATE ROLE foreign_reader LOGIN IN ROLE tidemark_reader;
  ALTER ROLE foreign_reader SET default_transaction_read_only = on;
  ALTER ROLE foreign_reader SET log_statement = 'all';
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
)");
  gateway_ = std::make_unique<GatewayThread>();
  const char* chosen = std::getenv("TIDEMARK_FOREIGN_PG_BINDIR");
  other_ = std::make_unique<Cluster>(std::vector<std::string>{}, false,
                                     chosen != nullptr ? chosen : ServerBinaries());
}

void ForeignFixture::TearDownTestSuite() {
  other_.reset();
  gateway_.reset();
  mirror_->TearDown();
  mirror_.reset();
}

std::string ForeignFixture::ConnectionString() {
  return gateway_->Dsn(mirror_->database(), "foreign_reader");
}

void ForeignFixture::SetUp() {
  static int number = 0;
  const auto name = fmt::format("local{}", ++number);
  other_->CreateDatabase(name);
  local_.emplace(other_->Connect(name));
  local_->Execute("CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink");
  CreateServer("tidemark", "", "m");
  local_->Execute("SET search_path = m, public");
  SentToStore();
}

void ForeignFixture::CreateServer(const std::string& name, const std::string& options,
                                  const std::string& local) {
  local_->Execute(fmt::format(
      R"(
CREATE SERVER {0} FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '127.0.0.1', port '{1}', dbname '{2}'{3});
CREATE USER MAPPING FOR CURRENT_USER SERVER {0} OPTIONS (user 'foreign_reader');
CREATE SCHEMA {4};
IMPORT FOREIGN SCHEMA public FROM SERVER {0} INTO {4};
)",
      name, gateway_->port(), mirror_->database(), options.empty() ? "" : ", " + options, local));
}

std::string ForeignFixture::Rows(const std::string& sql) { return mirror_->Rows(*local_, sql); }

std::string ForeignFixture::StateOf(const std::string& sql) {
  try {
    local_->Execute(sql);
  } catch (const base::Error& error) {
    return std::string(error.state().view());
  }
  return {};
}

std::string ForeignFixture::Plan(const std::string& sql) {
  return Rows("EXPLAIN (VERBOSE, COSTS off) " + sql);
}

void ForeignFixture::Write(const std::string& sql) {
  mirror_->source_->Execute(sql);
  mirror_->CatchUp();
}

std::string ForeignFixture::AwaitSleeping(const std::string& count) {
  const auto sleeping = [] {
    return mirror_->store_->Value(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'foreign_reader' AND state = "
        "'active' "
        "AND wait_event = 'PgSleep'");
  };
  const auto deadline = base::Deadline::After(20s);
  while (sleeping() != count && !deadline.passed()) std::this_thread::sleep_for(20ms);
  return sleeping();
}

std::string ForeignFixture::SentToStore() {
  std::ifstream log(Cluster::Shared().directory() / "log");
  log.seekg(log_read_);
  std::string text{std::istreambuf_iterator<char>(log), {}};
  log_read_ += static_cast<std::streamoff>(text.size());
  return text;
}

}  // namespace tidemark::tests
