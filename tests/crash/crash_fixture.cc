#include "tests/crash/crash_fixture.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "source/postgres/slot.h"

namespace tidemark::crash {

using namespace std::chrono_literals;
using base::Deadline;
using base::Lsn;

int Setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

namespace {

constexpr size_t kStatesCompared = 500;

}  // namespace

tests::Cluster& SourceCluster() {
  static tests::Cluster cluster({}, /*durable=*/true);
  return cluster;
}

tests::Cluster& StoreCluster() {
  static tests::Cluster cluster({}, /*durable=*/true);
  return cluster;
}

void Crash::SetUp() {
  static int number = 0;
  name_ = fmt::format("crash{}", ++number);
  source_dsn_ = SourceCluster().CreateDatabase(name_);
  store_dsn_ = StoreCluster().CreateDatabase(name_);
  source_.emplace(SourceCluster().Connect(name_));
  witness_.emplace(source_dsn_, "witness_" + name_);
  source_->Execute(oracle::SchemaSql());
  follower_.emplace(name_, source_dsn_, store_dsn_, oracle::kBatchChanges);
  comparison_.emplace(store_dsn_);
  watch_.emplace(source_dsn_, store_dsn_, slot());
}

void Crash::TearDown() {
  if (HasFailure()) {
    const auto log = follower_->Log();
    std::cout << log.substr(log.size() > 4000 ? log.size() - 4000 : 0) << "\n";
  }
  workload_.reset();
  sums_.reset();
  instants_.reset();
  EXPECT_EQ(watch_->Stop(), "");
  follower_.reset();
  witness_.reset();
  source::DropSlot(Source(), slot(), Deadline::After(20s));
}

// A line broken by a crash of the server shows only when it is used.
pg::Connection& Crash::Open(std::optional<pg::Connection>& line, tests::Cluster& cluster) {
  try {
    if (line && !line->InTransaction()) line->Execute("SELECT 1");
  } catch (const base::Error&) {
    line.reset();
  }
  if (!line) line.emplace(cluster.Connect(name_));
  return *line;
}

void Crash::StartWorkload() {
  workload_.emplace(
      oracle::WorkloadOptions{.dsn = source_dsn_,
                              .seed = static_cast<uint64_t>(Setting("TIDEMARK_CRASH_SEED", 1)),
                              .sessions = 3,
                              .large_every = 40,
                              .pause_us_max = 100'000});
}

void Crash::StartReaders() {
  sums_.emplace(store_dsn_, 1, 1);
  instants_.emplace(store_dsn_, std::vector<std::string>{"items", "account_b"}, 1, 2);
}

void Crash::CatchUp() {
  const Lsn upto = witness_->Absorb();
  ASSERT_TRUE(oracle::WaitReceived(store_dsn_, upto, Deadline::After(60s)))
      << "not received up to " << upto.ToString();
}

void Crash::CatchUpAndCompare() {
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  ASSERT_TRUE(comparison_->Advance(witness_->commits()));
}

void Crash::EndAndCompareAll() {
  if (workload_) {
    workload_->Stop();
    std::cout << workload_->committed() << " transactions done, " << workload_->failed()
              << " failed\n";
  }
  ASSERT_NO_FATAL_FAILURE(CatchUp());
  if (sums_) {
    for (const auto& line : sums_->Stop()) ADD_FAILURE() << line;
  }
  if (instants_) {
    for (const auto& line : instants_->Stop()) ADD_FAILURE() << line;
    for (const auto& line : instants_->AskAgain(Store(), 1500)) ADD_FAILURE() << line;
  }
  // From the first commit to the last, whatever was compared on the way.
  oracle::Comparison all(store_dsn_, 1 + witness_->commits().size() / kStatesCompared);
  ASSERT_TRUE(all.Advance(witness_->commits()));
  EXPECT_TRUE(all.CompareHistory());
  EXPECT_TRUE(all.ComparePresent(Source()));
  std::cout << all.compared() << " commits compared\n";
  EXPECT_GT(watch_->looks(), 0);
  EXPECT_TRUE(follower_->Stop()) << follower_->Log();
}

void Crash::ExpectNothingLeftBehind() {
  EXPECT_EQ(Source().Value("SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM "
                           "pg_replication_slots WHERE database = current_database()"),
            fmt::format("{} witness_{}", slot(), name_));
  EXPECT_EQ(Store().Value("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = "
                          "c.relnamespace WHERE n.nspname = 'tidemark_current' AND c.relkind = "
                          "'r' AND c.relname NOT IN (SELECT 'd' || id FROM tidemark.dataset)"),
            "0");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.dataset WHERE tx_first IS NULL"), "0");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.dataset"),
            std::to_string(oracle::PublishedTables().size()));
  EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.capture WHERE state = 'running'"), "0");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.capture WHERE state = 'published'"), "1");
  EXPECT_EQ(Store().Value("SELECT count(*) FROM tidemark.basis WHERE number IN (SELECT basis "
                          "FROM tidemark.basis_journal WHERE tx_last = 1)"),
            "1");
}

bool Crash::NothingPublished() {
  return !Store().Execute("SELECT to_regclass('tidemark.basis') IS NOT NULL").boolean(0, 0) ||
         Store().Value(
             "SELECT (SELECT count(*) FROM tidemark.basis) + (SELECT count(*) FROM "
             "pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', "
             "'v'))") == "0";
}

bool Crash::WaitFirstBasis() {
  if (oracle::WaitReceived(store_dsn_, Lsn(1), Deadline::After(5s))) return true;
  if (workload_) workload_->Calm(true);
  const bool there = oracle::WaitReceived(store_dsn_, Lsn(1), Deadline::After(60s));
  if (workload_) workload_->Calm(false);
  return there;
}

}  // namespace tidemark::crash
