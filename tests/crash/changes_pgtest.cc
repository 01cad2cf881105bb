// The follower killed while it follows changes of shape and reads tables whole: afterwards the
// mirror is its source, what was answered before is answered still, and nothing is left behind.
//   TIDEMARK_CHANGES_ROUNDS  random rounds, default 12
//   TIDEMARK_CHANGES_SEED    default 1
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "source/postgres/slot.h"
#include "tests/cluster.h"
#include "tests/crash/crash_fixture.h"
#include "tests/crash/follower_process.h"
#include "tests/history_holds.h"

namespace tidemark::crash {
namespace {

using namespace std::chrono_literals;
using base::Deadline;

class ChangedSource : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    const auto suffix = std::to_string(++number);
    name_ = "changed" + suffix;
    auto& cluster = tests::Cluster::Shared();
    source_dsn_ = cluster.CreateDatabase(name_ + "_source");
    store_dsn_ = cluster.CreateDatabase(name_ + "_store");
    source_.emplace(cluster.Connect(name_ + "_source"));
    store_.emplace(cluster.Connect(name_ + "_store"));
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, n int, v text); "
        "INSERT INTO t SELECT i, i, repeat('v', i % 50) FROM generate_series(1, 3000) i; "
        "CREATE TABLE d (a int, b text); ALTER TABLE d REPLICA IDENTITY FULL; "
        "INSERT INTO d SELECT i % 7, 'b' FROM generate_series(1, 50) i; "
        "CREATE PUBLICATION tidemark FOR ALL TABLES");
    // The source holds so little back that it sends large transactions while they run.
    follower_.emplace(name_, source_dsn_ + " options='-c logical_decoding_work_mem=64kB'",
                      store_dsn_, oracle::kBatchChanges);
  }
  void TearDown() override {
    follower_.reset();
    source::DropSlot(*source_, "tidemark_" + name_, Deadline::After(30s));
  }

  std::string TextOf(pg::Connection& on, const std::string& table) {
    try {
      return on.Value("SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, ',' ORDER BY "
                      "x::text)), '') FROM " + table + " AS x");
    } catch (const base::Error& error) {
      if (error.IsConnectionLoss()) throw;
      return error.message();
    }
  }
  /// Columns by name, since a column that had to begin anew stands last here.
  std::string StateOf(pg::Connection& on, const std::string& table) {
    try {
      const auto columns = on.Execute(
          "SELECT string_agg(quote_ident(attname), ', ' ORDER BY attname) FROM pg_attribute "
          "WHERE attrelid = to_regclass('public." + table +
              "') AND attnum > 0 AND NOT attisdropped");
      if (columns.is_null(0, 0)) return "no such table";
      return columns.str(0, 0) + ": " +
             TextOf(on, "(SELECT " + columns.str(0, 0) + " FROM public." + table + ")");
    } catch (const base::Error& error) {
      if (error.IsConnectionLoss()) throw;
      return error.message();
    }
  }
  std::vector<std::string> Tables() {
    const auto rows = source_->Execute(
        "SELECT tablename FROM pg_publication_tables WHERE pubname = 'tidemark' ORDER BY 1");
    std::vector<std::string> names;
    for (int i = 0; i < rows.rows(); ++i) names.push_back(rows.str(i, 0));
    return names;
  }
  void ExpectEqualSoon() {
    const auto deadline = Deadline::After(240s);
    for (const auto& table : Tables()) {
      const auto wanted = StateOf(*source_, table);
      while (StateOf(*store_, table) != wanted && !deadline.passed()) {
        std::this_thread::sleep_for(50ms);
      }
      ASSERT_EQ(StateOf(*store_, table), wanted) << table << "\n" << follower_->Log();
    }
    while (!deadline.passed() && store_->Value("SELECT count(*) FROM tidemark.resync "
                                               "WHERE ended_at IS NULL") != "0") {
      std::this_thread::sleep_for(50ms);
    }
  }
  /// Answers for an instant that has passed, to be given again later.
  void Remember() {
    const auto instant = store_->Value("SELECT max(system_time) FROM tidemark.basis");
    for (const char* table : {"t", "d"}) remembered_[{instant, table}] = Answer(instant, table);
  }
  std::string Answer(const std::string& instant, const std::string& table) {
    return store_->Value("SELECT count(*) || ' ' || coalesce(md5(string_agg(id::text || "
                         "coalesce(v, '-'), ',' ORDER BY id::text, v)), '') FROM (SELECT " +
                         std::string(table == "t" ? "id, v" : "a AS id, b AS v") +
                         " FROM tidemark.as_of(NULL::public." + table + ", '" + instant +
                         "')) AS x");
  }
  void ExpectRemembered() {
    for (const auto& [asked, answer] : remembered_) {
      EXPECT_EQ(Answer(asked.first, asked.second), answer) << asked.second << " at " << asked.first;
    }
  }
  void ExpectNothingLeftBehind() {
    const auto deadline = Deadline::After(30s);
    const auto left = [&] {
      return store_->Value("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = "
                           "c.relnamespace WHERE n.nspname = 'tidemark_stage' AND c.relkind = "
                           "'r'") +
             store_->Value("SELECT count(*) FROM tidemark.dataset WHERE tx_first IS NULL") +
             source_->Value("SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE "
                            "'tidemark_sync%' AND database = current_database()");
    };
    while (left() != "000" && !deadline.passed()) std::this_thread::sleep_for(50ms);
    EXPECT_EQ(left(), "000");
  }

  std::string name_, source_dsn_, store_dsn_;
  std::optional<pg::Connection> source_, store_;
  std::optional<FollowerProcess> follower_;
  std::map<std::pair<std::string, std::string>, std::string> remembered_;
};

TEST_F(ChangedSource, KilledAtAnyPointOfAChangeTheNextStartIsWhole) {
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon());
  Remember();
  ASSERT_TRUE(follower_->Stop());
  int round = 0;
  for (const char* point :
       {"shape.followed", "sync.slot_created", "sync.rows", "sync.copied", "sync.applied",
        "publish.before_commit", "publish.after_commit"}) {
    ++round;
    const auto n = std::to_string(round);
    follower_->Start(point);
    source_->Execute("ALTER TABLE t ADD c" + n + " int DEFAULT " + n);
    source_->Execute("UPDATE t SET n = n + 1, c" + n + " = 0 WHERE id % 10 = " + n);
    source_->Execute("ALTER TABLE d ALTER a TYPE " + std::string(round % 2 ? "bigint" : "int") +
                     " USING a + 1");
    source_->Execute("INSERT INTO d VALUES (" + n + ", 'round'); DELETE FROM t WHERE id % 100 = " +
                     n);
    source_->Execute("CREATE TABLE late" + n + " (id int PRIMARY KEY); INSERT INTO late" + n +
                     " SELECT generate_series(1, 200)");
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point << "\n" << follower_->Log();
    follower_->Start();
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon()) << point;
    ExpectRemembered();
    Remember();
    ASSERT_TRUE(follower_->Stop()) << follower_->Log();
  }
  ExpectNothingLeftBehind();
}

TEST_F(ChangedSource, KilledWhileAFamilyChangesItsParentShowsAllOfIt) {
  source_->Execute("CREATE TABLE f (id int PRIMARY KEY, n int); "
                   "CREATE TABLE f_heir (PRIMARY KEY (id)) INHERITS (f); "
                   "CREATE TABLE f_leaf (PRIMARY KEY (id)) INHERITS (f_heir); "
                   "INSERT INTO f SELECT i, i FROM generate_series(1, 50) i; "
                   "INSERT INTO f_heir SELECT i, i FROM generate_series(101, 150) i; "
                   "INSERT INTO f_leaf SELECT i, i FROM generate_series(201, 250) i");
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon());
  ASSERT_TRUE(follower_->Stop());
  int round = 0;
  for (const char* point : {"links.changed", "publish.before_commit", "shape.followed",
                            "links.changed", "publish.after_commit", "shape.followed"}) {
    const auto n = std::to_string(++round);
    follower_->Start(point);
    source_->Execute(round % 2 == 1 ? "ALTER TABLE f_leaf NO INHERIT f_heir"
                                    : "ALTER TABLE f_leaf INHERIT f_heir");
    source_->Execute("UPDATE f SET n = n + 1");
    if (round % 2 == 0) source_->Execute("ALTER TABLE f ADD x" + n + " int DEFAULT " + n);
    if (round == 3) source_->Execute("ALTER TABLE f RENAME x2 TO y2; ALTER TABLE f_leaf RENAME x2 "
                                     "TO y2");
    source_->Execute("UPDATE f_heir SET n = 0 WHERE id % 10 = " + n);
    ASSERT_TRUE(follower_->WaitKilled(Deadline::After(60s))) << point << "\n" << follower_->Log();
    follower_->Start();
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon()) << point;
    ASSERT_TRUE(follower_->Stop()) << follower_->Log();
  }
}

TEST_F(ChangedSource, KilledAtRandomUnderRandomChangesTheMirrorIsItsSource) {
  std::minstd_rand random(static_cast<unsigned>(Setting("TIDEMARK_CHANGES_SEED", 1)));
  const int rounds = Setting("TIDEMARK_CHANGES_ROUNDS", 12);
  follower_->Start();
  ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon());
  int columns = 0, kills = 0;
  for (int round = 1; round <= rounds; ++round) {
    const auto n = std::to_string(round);
    for (int i = 0; i < 6; ++i) {
      switch (random() % 11) {
        case 0:
          source_->Execute("ALTER TABLE t ADD x" + std::to_string(++columns) + " int DEFAULT 7");
          break;
        case 1:
          source_->Execute("ALTER TABLE t ADD x" + std::to_string(++columns) +
                           " uuid DEFAULT gen_random_uuid()");
          break;
        case 2:
          if (columns > 0) {
            source_->Execute("ALTER TABLE t DROP IF EXISTS x" +
                             std::to_string(1 + random() % static_cast<unsigned>(columns)));
          }
          break;
        case 3:
          source_->Execute("BEGIN; ALTER TABLE t RENAME n TO was; ALTER TABLE t RENAME v TO n; "
                           "ALTER TABLE t RENAME was TO v; ALTER TABLE t RENAME n TO was; "
                           "ALTER TABLE t RENAME v TO n; ALTER TABLE t RENAME was TO v; COMMIT");
          break;
        case 4:
          source_->Execute("ALTER TABLE t ALTER n TYPE bigint USING n * 2 % 1000000007");
          break;
        case 5:
          source_->Execute("BEGIN; TRUNCATE d; INSERT INTO d SELECT i, 'again' FROM "
                           "generate_series(1, 20) i; COMMIT");
          break;
        case 6:
          source_->Execute("CREATE TABLE IF NOT EXISTS more" + n +
                           " (id int PRIMARY KEY, r int); INSERT INTO more" + n +
                           " SELECT i, i FROM generate_series(1, 500) i ON CONFLICT DO NOTHING");
          break;
        case 7:
          source_->Execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                           "WHERE slot_name = 'tidemark_" + name_ + "' AND active_pid IS NULL");
          break;
        case 8:
          source_->Execute("BEGIN; INSERT INTO d SELECT i, repeat('kept', 20) FROM "
                           "generate_series(1, 1500) i; SAVEPOINT s; INSERT INTO d SELECT i, "
                           "repeat('gone', 20) FROM generate_series(1, 1500) i; ROLLBACK TO s; "
                           "DELETE FROM d WHERE a > 700; COMMIT");
          break;
        default:
          source_->Execute("UPDATE t SET v = 'round " + n + "' WHERE id % 37 = " +
                           std::to_string(random() % 37) + "; DELETE FROM t WHERE id = " +
                           std::to_string(random() % 3000) +
                           "; INSERT INTO d VALUES (" + n + ", 'one more')");
      }
      if (random() % 3 == 0) {
        ++kills;
        follower_->Kill();
        if (random() % 2 ==
            0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
        follower_->Start();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectEqualSoon()) << "round " << round;
    ExpectRemembered();
    Remember();
  }
  ASSERT_TRUE(follower_->Stop());
  ExpectNothingLeftBehind();
  tests::ExpectHistoryHolds(*store_);
  std::cout << rounds << " rounds, " << kills << " kills, " << columns << " columns added, "
            << store_->Value("SELECT count(*) FROM tidemark.resync") << " tables read again, "
            << store_->Value("SELECT max(number) FROM tidemark.basis") << " bases\n";
}

}  // namespace
}  // namespace tidemark::crash
