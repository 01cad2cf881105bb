// The cursor strategy against a server whose transactions do not commit in the order of their
// values.
#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/error.h"
#include "source/postgres/postgres_relation.h"
#include "tests/cluster.h"

namespace tidemark::source {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Limit Soon() { return {base::Deadline::After(seconds(60)), {}}; }

pg::Connection Connect(const std::string& dsn) {
  return pg::Connection::Open({.dsn = dsn}, base::Deadline::After(seconds(30)));
}

class Keyset : public testing::Test {
 protected:
  Keyset() : dsn_(Database()), connection_(Connect(dsn_)) {}

  std::unique_ptr<SourceRelation> Relation(const std::string& name = "public.log") {
    return OpenPostgresRelation({.dsn = dsn_, .relation = name, .snapshot = ""});
  }

  // Reads on from `plan.after`, which it moves; the int8 values of the first column.
  std::vector<int64_t> ReadOn(SourceRelation& relation, CursorPlan& plan) {
    const auto reader = relation.ReadSince(plan, {.limits = {.rows_max = 1000}}, Soon());
    std::vector<int64_t> values;
    for (;;) {
      const Step step = reader->Next(Soon());
      if (const auto* end = std::get_if<End>(&step)) {
        plan.after = end->position.resume;
        settled_ = end->position.settled;
        return values;
      }
      const auto& column =
          static_cast<const arrow::Int64Array&>(*std::get<Batch>(step).rows->column(1));
      for (int64_t i = 0; i < column.length(); ++i) values.push_back(column.Value(i));
    }
  }

  std::string dsn_;
  pg::Connection connection_;
  bool settled_ = false;

 private:
  static std::string Database() {
    static int number = 0;
    return tests::Cluster::Shared().CreateDatabase(fmt::format("keyset_{}", ++number));
  }
};

TEST_F(Keyset, ALateCommitWithALowerValueIsWaitedFor) {
  connection_.Execute("CREATE TABLE log (id bigserial PRIMARY KEY)");
  pg::Connection late = Connect(dsn_);
  late.Execute("BEGIN; INSERT INTO log DEFAULT VALUES");
  connection_.Execute("INSERT INTO log DEFAULT VALUES");
  std::jthread committer([&] {
    std::this_thread::sleep_for(milliseconds(300));
    late.Execute("COMMIT");
  });
  const auto relation = Relation();
  CursorPlan plan{.cursor = "id", .key = {"id"}};
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(1, 2));
  EXPECT_TRUE(settled_);
  EXPECT_EQ(plan.after->cursor, "2");
}

TEST_F(Keyset, ATransactionThatDoesNotEndHoldsThePositionBackAndNothingIsSkipped) {
  connection_.Execute("CREATE TABLE log (id bigserial PRIMARY KEY)");
  const auto relation = Relation();
  CursorPlan plan{.cursor = "id", .key = {"id"}, .settle_limit = milliseconds(100)};
  connection_.Execute("INSERT INTO log DEFAULT VALUES");
  ReadOn(*relation, plan);
  ASSERT_TRUE(settled_);

  // The value is taken before the transaction has an xid.
  pg::Connection late = Connect(dsn_);
  late.Execute("BEGIN; SELECT nextval('log_id_seq')");
  connection_.Execute("INSERT INTO log DEFAULT VALUES");
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(3));
  EXPECT_FALSE(settled_);
  EXPECT_EQ(plan.after->cursor, "1");

  late.Execute("INSERT INTO log VALUES (2); COMMIT");
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(2, 3));
  EXPECT_TRUE(settled_);
  EXPECT_EQ(plan.after->cursor, "3");
}

TEST_F(Keyset, APreparedTransactionIsARunningOne) {
  tests::Cluster cluster({"max_prepared_transactions = 2"});
  const std::string dsn = cluster.CreateDatabase("prepared");
  pg::Connection connection = Connect(dsn);
  connection.Execute("CREATE TABLE log (id int8 PRIMARY KEY)");
  connection.Execute("BEGIN");
  connection.Execute("INSERT INTO log VALUES (1)");
  connection.Execute("PREPARE TRANSACTION 'one'");
  connection.Execute("INSERT INTO log VALUES (2)");
  const auto relation =
      OpenPostgresRelation({.dsn = dsn, .relation = "log", .snapshot = ""});
  CursorPlan plan{.cursor = "id", .key = {"id"}, .settle_limit = milliseconds(100)};
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(2));
  EXPECT_FALSE(settled_);
  connection.Execute("COMMIT PREPARED 'one'");
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(1, 2));
}

TEST_F(Keyset, SixteenWritersLoseNoRow) {
  constexpr int kWriters = 16, kTransactions = 150, kRows = 4;
  connection_.Execute("CREATE TABLE log (id bigserial PRIMARY KEY, writer int)");
  std::atomic<int> running = kWriters;
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      pg::Connection connection = Connect(dsn_);
      for (int i = 0; i < kTransactions; ++i) {
        connection.Execute("BEGIN");
        for (int row = 0; row < kRows; ++row) {
          connection.Execute(fmt::format("INSERT INTO log (writer) VALUES ({})", writer));
          if (row == i % kRows) {
            connection.Execute(fmt::format("SELECT pg_sleep({})", 0.001 * ((i * 7 + writer) % 5)));
          }
        }
        connection.Execute("COMMIT");
      }
      --running;
    });
  }
  const auto relation = Relation();
  CursorPlan plan{.cursor = "id", .key = {"id"}};
  std::set<int64_t> seen;
  int reads = 0, twice = 0;
  while (running > 0) {
    for (const int64_t id : ReadOn(*relation, plan)) twice += seen.insert(id).second ? 0 : 1;
    ++reads;
  }
  writers.clear();
  for (const int64_t id : ReadOn(*relation, plan)) twice += seen.insert(id).second ? 0 : 1;
  EXPECT_GT(reads, 3);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kWriters * kTransactions * kRows));
  EXPECT_EQ(twice, 0);  // every read settled, so none overlaps
}

TEST_F(Keyset, TiesAreReadOnceByTheirKey) {
  connection_.Execute(
      "CREATE TABLE log (id int8, part text, at timestamptz NOT NULL, PRIMARY KEY (id, part));"
      "INSERT INTO log SELECT i / 2, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, '2026-01-01+00'"
      " FROM generate_series(0, 9999) i");
  const auto relation = Relation();
  CursorPlan plan{.cursor = "at", .key = {"id", "part"}};
  EXPECT_EQ(ReadOn(*relation, plan).size(), 10'000U);
  EXPECT_EQ(*plan.after, (CursorPosition{"2026-01-01 00:00:00+00", {"4999", "b"}}));
  plan.after = CursorPosition{"2026-01-01 00:00:00+00", {"4000", "a"}};
  const auto rest = ReadOn(*relation, plan);
  EXPECT_EQ(rest.size(), 1999U);
  EXPECT_EQ(rest.front(), 4000);
}

struct Typed {
  const char* type;
  std::vector<const char*> values;  // in the type's own order
};

TEST_F(Keyset, PositionsOfEveryTypeAreExact) {
  const Typed types[] = {
      {"timestamptz", {"-infinity", "2026-03-29 00:59:59.123456+00",
                       "2026-03-29 00:59:59.123457+00",
                       "2026-03-29 01:00:00+00", "infinity"}},
      {"timestamp(3)", {"2026-01-01 00:00:00.001", "2026-01-01 00:00:00.002"}},
      {"numeric", {"-1.10", "1.1000000000000000000000000001", "99999999999999999999999", "NaN"}},
      {"text", {"", "A", "B", "a", "b'\\c", "é"}},
      {"uuid", {"00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000000"}},
      {"int", {"-5", "0", "7"}},
      {"float8", {"-0.1", "0.1", "0.30000000000000004"}}};
  for (const Typed& typed : types) {
    connection_.Execute("DROP TABLE IF EXISTS log");
    connection_.Execute(fmt::format("CREATE TABLE log (n int8, c {} NOT NULL PRIMARY KEY)",
                                    typed.type));
    int64_t n = 0;
    for (const char* value : typed.values) {
      connection_.Execute("INSERT INTO log VALUES ($1, $2)", {std::to_string(++n), value});
    }
    const auto relation = Relation();
    CursorPlan plan{.cursor = "c", .key = {"c"}};
    const std::vector<int64_t> all = ReadOn(*relation, plan);
    EXPECT_EQ(all.size(), typed.values.size()) << typed.type;
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end())) << typed.type;
    EXPECT_THAT(ReadOn(*relation, plan), testing::IsEmpty()) << typed.type;
    // From the text of each value on: exactly the later ones.
    for (size_t i = 0; i < typed.values.size(); ++i) {
      plan.after = CursorPosition{typed.values[i], {typed.values[i]}};
      EXPECT_EQ(ReadOn(*relation, plan).size(), typed.values.size() - i - 1)
          << typed.type << " " << typed.values[i];
    }
  }
}

TEST_F(Keyset, TextIsComparedInItsColumnsCollation) {
  connection_.Execute(
      "CREATE COLLATION digits (provider = icu, locale = 'en-u-kn-true');"
      "CREATE TABLE log (n int8, c text COLLATE digits NOT NULL);"
      "INSERT INTO log VALUES (1, 'a2'), (2, 'a10')");
  const auto relation = Relation();
  CursorPlan plan{.cursor = "c", .key = {"n"}};
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(1, 2));
  plan.after = CursorPosition{"a2", {"1"}};
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(2));
}

TEST_F(Keyset, AnOverlapIsReadAgain) {
  connection_.Execute(
      "CREATE TABLE log (n int8, at timestamptz NOT NULL);"
      "INSERT INTO log SELECT i, '2026-01-01+00'::timestamptz + i * interval '1 minute'"
      " FROM generate_series(1, 60) i");
  const auto relation = Relation();
  CursorPlan plan{.cursor = "at", .key = {"n"}, .overlap = "5 minutes"};
  EXPECT_EQ(ReadOn(*relation, plan).size(), 60U);
  EXPECT_THAT(ReadOn(*relation, plan), testing::ElementsAre(55, 56, 57, 58, 59, 60));
  plan.cursor = "n";
  plan.overlap = "nonsense";
  plan.after = CursorPosition{"60", {"60"}};
  EXPECT_THROW(ReadOn(*relation, plan), base::Error);
}

}  // namespace
}  // namespace tidemark::source
