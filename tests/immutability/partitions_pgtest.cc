// Statements and transactions that are older than a change of the history's partitions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "base/error.h"
#include "base/identifier.h"
#include "temporal/sealing.h"
#include "tests/cluster.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/mirror_thread.h"
#include "tests/oracle/transaction_script.h"

namespace tidemark::immutability {
namespace {

using namespace std::chrono_literals;
using base::Deadline;

class Partitions : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    name_ = fmt::format("partitions{}", ++number);
    auto& cluster = tests::Cluster::Shared();
    source_dsn_ = cluster.CreateDatabase("source_" + name_);
    store_dsn_ = cluster.CreateDatabase("store_" + name_);
    source_.emplace(cluster.Connect("source_" + name_));
    store_.emplace(cluster.Connect("store_" + name_));
    source_->Execute(
        "CREATE TABLE t (id integer PRIMARY KEY, n integer); "
        "INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i");
    mirror_.emplace(capture::MirrorOptions{.name = name_,
                                           .source_dsn = source_dsn_,
                                           .store_dsn = store_dsn_,
                                           .history = {.rows_aimed = 1000},
                                           .batch_changes = oracle::kBatchChanges});
    CatchUp();
  }
  void CatchUp() {
    source_->Execute("SET synchronous_commit = on; SELECT pg_logical_emit_message(true, '', '')");
    const auto upto = base::Lsn::Parse(source_->Value("SELECT pg_current_wal_flush_lsn()"));
    ASSERT_TRUE(oracle::WaitReceived(store_dsn_, upto, Deadline::After(90s))) << mirror_->failure();
  }

  std::string name_, source_dsn_, store_dsn_;
  std::optional<pg::Connection> source_, store_;
  std::optional<oracle::MirrorThread> mirror_;
};

// The plan is made before the first version of t is closed, its snapshot is taken after it.
TEST_F(Partitions, AStatementPlannedBeforeAPartitionCameMissesNoVersion) {
  // Estimating the condition calls the function while the statement is planned: it waits once. The
  // sub-selects make the planner come to it last, when it has looked up the partitions.
  store_->Execute(R"sql(
CREATE FUNCTION public.least_version() RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF coalesce(current_setting('test.waited', true), '') = '' THEN
    PERFORM set_config('test.waited', 'yes', false), pg_advisory_lock_shared(42);
  END IF;
  RETURN 0;
END
$$)sql");
  store_->Execute("SELECT pg_advisory_lock(42)");
  auto reader = tests::Cluster::Shared().Connect("store_" + name_);
  const auto instant = base::QuoteLiteral(reader.Value("SELECT clock_timestamp()"));
  const auto question = fmt::format(
      "SELECT count(*) FROM tidemark.as_of(NULL::public.t, {}) r, (SELECT FROM (SELECT FROM "
      "tidemark.store s WHERE s.schema_version >= public.least_version()) a) b",
      instant);
  auto answer = std::async(std::launch::async, [&] { return reader.Value(question); });
  const auto deadline = Deadline::After(20s);
  while (store_->Value(
             "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "0") {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::sleep_for(5ms);
  }
  source_->Execute("UPDATE t SET n = 1 WHERE id <= 4");
  CatchUp();
  store_->Execute("SELECT pg_advisory_unlock(42)");
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get(), "10");
  EXPECT_EQ(reader.Value(question), "10");
}

// A full partition is rewritten while a transaction is open that is older than the new one's rows.
TEST_F(Partitions, ATransactionOlderThanASealMissesNoVersion) {
  constexpr int kCommits = 5'000;  // more than the first partition takes
  const auto instant = base::QuoteLiteral(store_->Value("SELECT clock_timestamp()"));
  source_->Execute("SET synchronous_commit = off");
  source_->Execute(
      fmt::format("DO $$ BEGIN FOR i IN 1..{} LOOP UPDATE t SET n = i WHERE id = 1 + "
                  "i % 10; COMMIT; END LOOP; END $$",
                  kCommits));
  // A snapshot without a newer publish could not tell that the instant has passed.
  const auto published = Deadline::After(30s);
  while (!published.passed() &&
         store_->Value("SELECT max(system_time) > " + instant + " FROM tidemark.basis") != "t") {
    std::this_thread::sleep_for(5ms);
  }
  auto reader = tests::Cluster::Shared().Connect("store_" + name_);
  const auto question = fmt::format(
      "SELECT count(*) || ' rows, sum ' || sum(n) FROM tidemark.as_of(NULL::public.t, {})",
      instant);
  reader.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_EQ(reader.Value("SELECT count(*) FROM tidemark.history_partition WHERE sealed"), "0");
  CatchUp();
  auto sealer = tests::Cluster::Shared().Connect("store_" + name_);
  const auto sealed_before = [&](Deadline deadline) {
    while (!deadline.passed()) {
      if (sealer.Value("SELECT count(*) FROM tidemark.history_partition WHERE sealed") != "0") {
        return true;
      }
      temporal::Sealer({}).SealOne(sealer);
      std::this_thread::sleep_for(20ms);
    }
    return false;
  };
  // That it waits for the reader to end is right, too.
  sealed_before(Deadline::After(2s));
  EXPECT_EQ(reader.Value(question), "10 rows, sum 0");
  reader.Execute("COMMIT");
  EXPECT_TRUE(sealed_before(Deadline::After(20s)));
  EXPECT_EQ(reader.Value(question), "10 rows, sum 0");
}

}  // namespace
}  // namespace tidemark::immutability
