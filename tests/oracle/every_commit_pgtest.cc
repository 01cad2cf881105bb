// Every commit of a random workload, asked for in every way there is, against the model.
//   TIDEMARK_ORACLE_SEED           default: another one each time, printed
//   TIDEMARK_ORACLE_TRANSACTIONS   of all sessions once the first copy is done, default 800
//   TIDEMARK_ORACLE_SESSIONS       default 4
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "capture/mirror_job.h"
#include "source/postgres/slot.h"
#include "tests/cluster.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/mirror_thread.h"
#include "tests/oracle/sum_readers.h"
#include "tests/oracle/witness.h"
#include "tests/oracle/workload.h"

namespace tidemark::oracle {
namespace {

using namespace std::chrono_literals;
using base::Deadline;

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t Seed() {
  static const uint64_t seed = Setting(
      "TIDEMARK_ORACLE_SEED",
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1'000'000);
  return seed;
}

TEST(EveryCommit, IsReproducedByPositionTxAndInstant) {
  const int transactions = static_cast<int>(Setting("TIDEMARK_ORACLE_TRANSACTIONS", 800));
  const int sessions = static_cast<int>(Setting("TIDEMARK_ORACLE_SESSIONS", 4));
  std::cout << "TIDEMARK_ORACLE_SEED=" << Seed() << "\n";
  auto& cluster = tests::Cluster::Shared();
  const auto source_dsn = cluster.CreateDatabase("source");
  const auto store_dsn = cluster.CreateDatabase("store");
  auto source = cluster.Connect("source");
  Witness witness(source_dsn, "witness");
  source.Execute(SchemaSql());

  Workload workload({.dsn = source_dsn, .seed = Seed(), .sessions = sessions});
  SumReaders readers(store_dsn, 3, Seed());
  MirrorThread mirror({.name = "oracle", .source_dsn = source_dsn, .store_dsn = store_dsn});
  // The first copy is taken while the workload runs.
  if (!WaitReceived(store_dsn, base::Lsn(1), Deadline::After(5s))) workload.Calm(true);
  ASSERT_TRUE(WaitReceived(store_dsn, base::Lsn(1), Deadline::After(60s))) << mirror.failure();
  workload.Calm(false);
  ASSERT_TRUE(workload.Do(transactions, Deadline::After(240s)));
  workload.Stop();
  std::cout << workload.committed() << " transactions done, " << workload.failed() << " failed\n";

  const auto upto = witness.Absorb();
  ASSERT_TRUE(WaitReceived(store_dsn, upto, Deadline::After(120s)))
      << mirror.failure() << "\n"
      << cluster.Connect("store").Value("SELECT problems FROM tidemark.progress");
  {
    const auto wrong = readers.Stop();
    for (const auto& line : wrong) ADD_FAILURE() << line;
    EXPECT_GT(readers.answers(), 50);
  }

  Comparison comparison(store_dsn);
  ASSERT_TRUE(comparison.Advance(witness.commits()));
  EXPECT_TRUE(comparison.CompareHistory());
  EXPECT_TRUE(comparison.ComparePresent(source));
  std::cout << comparison.compared() << " commits compared, " << readers.answers() << " sums read\n";
  mirror.Stop();
  EXPECT_EQ(mirror.failure(), "");
  source::DropSlot(source, capture::SlotNameFor("oracle"), Deadline::After(20s));
}

}  // namespace
}  // namespace tidemark::oracle
