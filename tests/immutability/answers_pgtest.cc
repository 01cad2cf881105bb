// Readers against publishes at full speed: an answer to AS OF, once given, never changes.
//   TIDEMARK_IMMUTABILITY_SECONDS   how long it is published, default 15
//   TIDEMARK_IMMUTABILITY_READERS   default 5
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/cluster.h"
#include "tests/immutability/instant_readers.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/mirror_thread.h"
#include "tests/oracle/tables.h"
#include "tests/oracle/transaction_script.h"

namespace tidemark::immutability {
namespace {

using namespace std::chrono_literals;
using base::Deadline;

int Setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Small transactions without a pause: each publish begins as soon as the one before has ended.
class Writer {
 public:
  Writer(std::string dsn, int first_id)
      : thread_([this, dsn = std::move(dsn), first_id](std::stop_token stop) {
          auto source = pg::Connection::Open({.dsn = dsn}, Deadline::After(20s));
          for (int i = 0; !stop.stop_requested(); ++i) {
            source.Execute("UPDATE account_a SET balance = balance + 1 WHERE id = $1",
                           {std::to_string(first_id + i % 5)});
            source.Execute("UPDATE items SET n = n + 1 WHERE id BETWEEN $1::int AND $1::int + 3",
                           {std::to_string(first_id + i % 5)});
            ++commits;
          }
        }) {}
  std::atomic<int64_t> commits{0};

 private:
  std::jthread thread_;
};

TEST(Immutability, TheAnswerToAsOfNeverChanges) {
  const auto seconds = std::chrono::seconds(Setting("TIDEMARK_IMMUTABILITY_SECONDS", 15));
  tests::Cluster cluster({"max_connections = 100"});
  const auto source_dsn = cluster.CreateDatabase("source");
  const auto store_dsn = cluster.CreateDatabase("store");
  auto source = cluster.Connect("source");
  source.Execute(oracle::SchemaSql());
  // Small history partitions: they are closed and sealed all the time.
  oracle::MirrorThread mirror({.name = "hammer",
                               .source_dsn = source_dsn,
                               .store_dsn = store_dsn,
                               .history = {.rows_aimed = 100},
                               .batch_changes = oracle::kBatchChanges});
  ASSERT_TRUE(oracle::WaitReceived(store_dsn, base::Lsn(1), Deadline::After(60s)))
      << mirror.failure();

  InstantReaders readers(store_dsn, {"account_a", "items"},
                         Setting("TIDEMARK_IMMUTABILITY_READERS", 5), 1);
  auto store = cluster.Connect("store");
  const auto bases_before = store.Value("SELECT max(number) FROM tidemark.basis");
  {
    Writer one(source_dsn, 1), two(source_dsn, 8);
    std::this_thread::sleep_for(seconds);
    EXPECT_GT(one.commits + two.commits, 0);
  }
  for (const auto& line : readers.Stop()) ADD_FAILURE() << line;
  EXPECT_EQ(mirror.failure(), "");
  const auto bases =
      std::stoll(store.Value("SELECT max(number) FROM tidemark.basis")) - std::stoll(bases_before);
  EXPECT_GT(bases, 20);
  for (const auto& line : readers.AskAgain(store, 600)) ADD_FAILURE() << line;
  mirror.Stop();
  for (const auto& line : readers.AskAgain(store, 150)) ADD_FAILURE() << line;

  const char* const names[] = {"literal", "literal, repeatable read", "parameter",
                               "once",    "once, repeatable read",    "source time",
                               "position"};
  std::cout << store.Value(
                   "SELECT count(*) || ' history partitions, ' || count(*) FILTER (WHERE "
                   "sealed) || ' sealed' FROM tidemark.history_partition")
            << "\n"
            << bases << " bases published, " << readers.asked_again() << " answers asked again\n";
  for (int i = 0; i < kForms; ++i) {
    const auto& counts = readers.counts(static_cast<Form>(i));
    std::cout << names[i] << ": " << counts.answered << " answered, " << counts.refused
              << " refused\n";
    EXPECT_GT(counts.answered, 0) << names[i];
  }
  EXPECT_EQ(readers.counts(Form::kLiteral).refused, 0);
  // A statement's own snapshot is refused only when a publish falls between it and its instant.
  for (const Form form : {Form::kParameter, Form::kOnce}) {
    const auto& counts = readers.counts(form);
    EXPECT_LT(counts.refused, counts.answered) << "refused too often";
  }
}

}  // namespace
}  // namespace tidemark::immutability
