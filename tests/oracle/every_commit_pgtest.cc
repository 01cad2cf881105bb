// Every commit of a random workload, asked for in every way there is, against the model.
//   TIDEMARK_ORACLE_SEED           default: another one each time, printed
//   TIDEMARK_ORACLE_TRANSACTIONS   of all sessions once the first copy is done, default 800
//   TIDEMARK_ORACLE_SESSIONS       default 4
#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

#include "base/error.h"
#include "capture/mirror_job.h"
#include "source/postgres/slot.h"
#include "source/postgres/table_state.h"
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
  static const uint64_t seed =
      Setting("TIDEMARK_ORACLE_SEED",
              static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
                  1'000'000);
  return seed;
}

// Of each table that changes and is published: its name, and a digest of all of its columns.
std::map<std::string, std::string> ChangingStates(pg::Connection& server,
                                                  const std::string& published) {
  std::map<std::string, std::string> states;
  for (const auto& table : ChangingTables()) {
    if (server.Execute(published, {table.name}).rows() == 0) continue;
    states[table.name] = server.Value(fmt::format(
        "SELECT count(*) || ' rows, ' || coalesce(sum(hashtextextended(to_jsonb(t)::text, 0)), 0) "
        "FROM {} t",
        table.name));
  }
  return states;
}

// Whether the mirror has looked at each table that changes since it last did.
bool HasLooked(pg::Connection& source, pg::Connection& store) {
  for (const auto& state : source::LoadTableStates(source, std::string(kPublication))) {
    const bool changes = std::ranges::any_of(
        ChangingTables(), [&](const auto& table) { return table.name == state.name.name; });
    if (changes && store.Execute("SELECT FROM tidemark.dataset WHERE table_name = $1 AND "
                                 "source_state = $2",
                                 {state.name.name, state.Text()})
                           .rows() == 0) {
      return false;
    }
  }
  return true;
}

// Waits until no table is to be read any more, and what is published is there as the source has it.
void AwaitReadings(pg::Connection& source, pg::Connection& store) {
  const auto deadline = Deadline::After(90s);
  std::map<std::string, std::string> wanted, got;
  std::string open;
  do {
    // A quiet source says nothing of its place in the log.
    source.Execute("SELECT pg_logical_emit_message(true, 'awaits', '')");
    open = store.Value("SELECT count(*) FROM tidemark.resync WHERE ended_at IS NULL");
    wanted = ChangingStates(source, "SELECT FROM pg_publication_tables WHERE tablename = $1");
    try {
      got = ChangingStates(store,
                           "SELECT FROM tidemark.dataset WHERE table_name = $1 AND tx_first > 0");
    } catch (const base::Error&) {
      got.clear();  // met a change of columns
    }
    if (open == "0" && wanted == got && HasLooked(source, store)) {
      // A reading may stand a little beyond the newest commit: the comparison goes up to one.
      source.Execute("SELECT pg_logical_emit_message(true, 'has read', '')");
      return;
    }
    std::this_thread::sleep_for(50ms);
  } while (!deadline.passed());
  EXPECT_EQ(open, "0") << store.Value("SELECT problems FROM tidemark.progress");
  EXPECT_EQ(wanted, got);
  EXPECT_TRUE(HasLooked(source, store));
}

// What it takes to tell how a difference came about: a seed alone does not bring it back.
void Explain(pg::Connection& source, pg::Connection& store) {
  const auto show = [](const char* what, pg::Connection& server, const std::string& sql) {
    std::cout << "-- " << what << "\n";
    const auto rows = server.Execute(sql);
    for (int i = 0; i < rows.rows(); ++i) std::cout << rows.str(i, 0) << "\n";
  };
  show("columns at the source", source, R"sql(
SELECT concat_ws(' ', c.relname, a.attnum, a.attname, a.atttypid::regtype, 'xmin', a.xmin)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relname ~ '^(rewritten|reshaped|late_)' AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
)sql");
  show("columns in the store", store, R"sql(
SELECT concat_ws(' ', d.table_name, c.number, c.name, c.type_sql, 'source', c.source_number,
                 'position', c.position, 'txs', c.tx_from, c.tx_to)
FROM tidemark.dataset_column c JOIN tidemark.dataset d ON d.id = c.dataset
WHERE d.table_name ~ '^(rewritten|reshaped|late_)'
ORDER BY d.table_name, c.tx_from, c.number
)sql");
  show("readings asked for", store, R"sql(
SELECT concat_ws(' ', d.table_name, r.reason, 'asked', r.requested_at, 'ended', r.ended_at,
                 'capture', r.capture, 'puts', r.puts, 'deletions', r.deletions, r.error)
FROM tidemark.resync r JOIN tidemark.dataset d ON d.id = r.dataset ORDER BY r.id
)sql");
  show("txs without a commit of the source", store, R"sql(
SELECT concat_ws(' ', t.tx, t.end_lsn, t.source_time, b.basis, b.system_time)
FROM tidemark.tx t
LEFT JOIN tidemark.basis_journal b ON b.journal = t.journal AND b.tx_last = t.tx
WHERE coalesce(t.xid::text::bigint, 0) = 0 ORDER BY t.tx
)sql");
}

// `name` is of the databases and the mirror, `options` of the mirror's sessions at the source.
void ExpectEveryCommit(const std::string& name, int transactions, int sessions,
                       const std::string& options, Publishing publishing = Publishing::kNamed) {
  std::cout << "TIDEMARK_ORACLE_SEED=" << Seed() << "\n";
  auto& sources = tests::Cluster::SharedSource();
  auto& cluster = tests::Cluster::Shared();
  const auto source_dsn = sources.CreateDatabase(name + "_source");
  const auto store_dsn = cluster.CreateDatabase(name + "_store");
  auto source = sources.Connect(name + "_source");
  if (publishing == Publishing::kNamed && source.server_version() < 150000) {
    publishing = Publishing::kNamedWhole;
  }
  PublishAs(publishing);
  Witness witness(source_dsn, name + "_witness");
  source.Execute(SchemaSql(/*changing=*/true));

  Workload workload({.dsn = source_dsn,
                     .seed = Seed(),
                     .sessions = sessions,
                     .script = {.shapes = true, .changing = true, .rewrites = true}});
  SumReaders readers(store_dsn, 3, Seed());
  // Small history partitions: they are closed and sealed all the time.
  MirrorThread mirror({.name = name,
                       .source_dsn = source_dsn + options,
                       .store_dsn = store_dsn,
                       .history = {.rows_aimed = 300},
                       .batch_changes = kBatchChanges});
  // The first copy is taken while the workload runs.
  if (!WaitReceived(store_dsn, base::Lsn(1), Deadline::After(5s))) workload.Calm(true);
  ASSERT_TRUE(WaitReceived(store_dsn, base::Lsn(1), Deadline::After(60s))) << mirror.failure();
  workload.Calm(false);
  ASSERT_TRUE(workload.Do(transactions, Deadline::After(240s)));
  workload.Stop();
  std::cout << workload.committed() << " transactions done, " << workload.failed() << " failed\n";

  auto store = cluster.Connect(name + "_store");
  const auto received = [&] {
    ASSERT_TRUE(WaitReceived(store_dsn, witness.Absorb(), Deadline::After(120s)))
        << mirror.failure() << "\n"
        << store.Value("SELECT problems FROM tidemark.progress");
  };
  ASSERT_NO_FATAL_FAILURE(received());
  AwaitReadings(source, store);
  ASSERT_NO_FATAL_FAILURE(received());
  {
    const auto wrong = readers.Stop();
    for (const auto& line : wrong) ADD_FAILURE() << line;
    EXPECT_GT(readers.answers(), 50);
  }

  Comparison comparison(store_dsn);
  ASSERT_TRUE(comparison.Advance(witness.commits()));
  EXPECT_TRUE(comparison.CompareHistory());
  EXPECT_TRUE(comparison.ComparePresent(source));
  std::cout << comparison.compared() << " commits compared, " << comparison.readings()
            << " readings, " << readers.answers() << " sums read\n";
  if (testing::Test::HasFailure()) Explain(source, store);
  mirror.Stop();
  EXPECT_EQ(mirror.failure(), "");
  if (!options.empty()) {
    EXPECT_NE(source.Value("SELECT stream_txns FROM pg_stat_replication_slots WHERE slot_name = $1",
                           {capture::SlotNameFor(name)}),
              "0");
  }
  source::DropSlot(source, capture::SlotNameFor(name), Deadline::After(20s));
}

TEST(EveryCommit, IsReproducedByPositionTxAndInstant) {
  ExpectEveryCommit("oracle", static_cast<int>(Setting("TIDEMARK_ORACLE_TRANSACTIONS", 800)),
                    static_cast<int>(Setting("TIDEMARK_ORACLE_SESSIONS", 4)), "");
}

// From version 16 on the source can be told to send every change at once.
TEST(EveryCommit, IsReproducedWhenTransactionsAreSentWhileTheyRun) {
  const bool at_once = tests::Cluster::SharedSource().Connect().server_version() >= 160000;
  ExpectEveryCommit("streamed", static_cast<int>(Setting("TIDEMARK_ORACLE_TRANSACTIONS", 800)) / 2,
                    8,
                    at_once ? " options='-c debug_logical_replication_streaming=immediate'"
                            : " options='-c logical_decoding_work_mem=64kB'");
}

// With tables that come later by being created.
TEST(EveryCommit, IsReproducedWhenAllTablesArePublished) {
  ExpectEveryCommit("all", static_cast<int>(Setting("TIDEMARK_ORACLE_TRANSACTIONS", 800)) / 2, 4,
                    "", Publishing::kAllTables);
}

// The oracle is no better than what it finds: each of these makes one answer wrong.
TEST(EveryCommit, AWrongVersionIsFound) {
  auto& cluster = tests::Cluster::Shared();
  const auto source_dsn = cluster.CreateDatabase("tampered_source");
  const auto store_dsn = cluster.CreateDatabase("tampered_store");
  auto source = cluster.Connect("tampered_source");
  PublishAs(Publishing::kNamed);
  Witness witness(source_dsn, "tampered_witness");
  source.Execute(SchemaSql());
  MirrorThread mirror({.name = "tampered", .source_dsn = source_dsn, .store_dsn = store_dsn});
  ASSERT_TRUE(WaitReceived(store_dsn, base::Lsn(1), Deadline::After(60s))) << mirror.failure();
  source.Execute("INSERT INTO journal_line VALUES (1, 'line')");
  source.Execute("UPDATE items SET n = 1 WHERE id = 1");
  source.Execute("UPDATE items SET n = 2 WHERE id = 1");
  source.Execute("DELETE FROM items WHERE id = 2");
  ASSERT_TRUE(WaitReceived(store_dsn, witness.Absorb(), Deadline::After(60s))) << mirror.failure();
  mirror.Stop();
  const auto difference_found = [&](const std::string& store) {
    testing::TestPartResultArray results;
    {
      const testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      Comparison comparison(cluster.Dsn(store));
      comparison.Advance(witness.commits());
      comparison.CompareHistory();
      comparison.ComparePresent(source);
    }
    return results.size() > 0;
  };
  EXPECT_FALSE(difference_found("tampered_store"));
  // `items` and `lines` stand for the tables' names in the store.
  const char* const tamperings[] = {
      "DELETE FROM tidemark_history.items WHERE id = 2",
      "UPDATE tidemark_history.items SET n = 3 WHERE id = 1 AND n = 1",
      "UPDATE tidemark_history.items SET _from = _from + 1 WHERE id = 1 AND n = 1",
      "UPDATE tidemark_current.items SET note = NULL WHERE id = 40",
      "INSERT INTO tidemark_current.lines SELECT * FROM tidemark_current.lines",
      "DELETE FROM tidemark.tx WHERE tx = 3",
      "UPDATE tidemark.tx SET source_time = source_time - interval '1 day' WHERE tx = 4",
      "UPDATE tidemark.version SET live_rows = live_rows + 1",
  };
  int number = 0;
  for (std::string tampering : tamperings) {
    const auto name = "tampered_store_" + std::to_string(++number);
    cluster.Connect().Execute("CREATE DATABASE " + name + " TEMPLATE tampered_store");
    auto store = cluster.Connect(name);
    for (const auto& [word, table] :
         {std::pair<std::string, std::string>{".items", "items"}, {".lines", "journal_line"}}) {
      const auto id =
          store.Value("SELECT '.d' || id FROM tidemark.dataset WHERE table_name = $1", {table});
      for (size_t at; (at = tampering.find(word)) != std::string::npos;) {
        tampering.replace(at, word.size(), id);
      }
    }
    EXPECT_GT(store.Execute(tampering).affected(), 0) << tampering;
    EXPECT_TRUE(difference_found(name)) << tampering;
  }
  source::DropSlot(source, capture::SlotNameFor("tampered"), Deadline::After(20s));
}

}  // namespace
}  // namespace tidemark::oracle
