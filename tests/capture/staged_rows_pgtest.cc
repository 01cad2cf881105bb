// What a batch stages is the session's, and outlives the transaction: it must not be taken for what
// a later batch stages, and a large one leaves nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

class StagedRows : public MirrorFixture {
 protected:
  // Of all sessions of the store's database; the mirror's are the only ones that have any.
  int64_t Bytes() {
    return store_->Execute("SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class "
                           "WHERE relpersistence = 't' AND relkind = 'r'").int64(0, 0);
  }
  int64_t Versions(const std::string& table) {
    return store_->Execute("SELECT count(*) FROM public_history." + table).int64(0, 0);
  }
};

// Values that travel as text are staged in a table more.
class InTurns : public StagedRows, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(AsText, InTurns, testing::Bool());

TEST_P(InTurns, TablesShowWhatWasDoneToThem) {
  options_.unknown_as_text = GetParam();
  constexpr int kTables = 12, kRounds = 5;
  for (int i = 0; i < kTables; ++i) {
    source_->Execute(fmt::format(
        "CREATE TABLE t{0} (id int PRIMARY KEY, n int, big text); "
        "ALTER TABLE t{0} ALTER big SET STORAGE EXTERNAL; "
        "INSERT INTO t{0} SELECT i, 0, repeat('x', 5000) FROM generate_series(1, 20) i", i));
  }
  source_->Execute("CREATE TABLE bag (n int, v text); ALTER TABLE bag REPLICA IDENTITY FULL; "
                   "INSERT INTO bag SELECT i % 3, 'v' FROM generate_series(1, 9) i");
  Start();
  CatchUp();
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kTables; ++i) {
      source_->Execute(fmt::format("UPDATE t{} SET n = {} WHERE id % {} = 0", i, round, 1 + i % 3));
      source_->Execute(fmt::format("BEGIN; DELETE FROM t{0} WHERE id = {1}; UPDATE t{0} SET id = id + 100 "
                                   "WHERE id = {1} + 10; COMMIT", i, round));
    }
    source_->Execute(fmt::format("UPDATE bag SET v = '{}' WHERE n = {}", round, round % 3));
    if (round % 2 == 0) CatchUp();  // else what follows may be of the same batch
  }
  CatchUp();
  for (int i = 0; i < kTables; ++i) {
    ExpectSame(fmt::format("SELECT id, n, md5(big) FROM t{} ORDER BY id", i));
  }
  ExpectSame("SELECT n, v FROM bag ORDER BY n, v");
  EXPECT_EQ(Versions("bag"), 9 + 3 * kRounds);
}

// Which of them goes cannot be told, how many can, at each commit of a batch.
TEST_F(StagedRows, EqualRowsGoOneForOne) {
  source_->Execute("CREATE TABLE bag (n int, v text); ALTER TABLE bag REPLICA IDENTITY FULL; "
                   "INSERT INTO bag SELECT i % 2, 'v' FROM generate_series(1, 2000) i");
  Start();
  CatchUp();
  Stop();
  std::vector<std::pair<std::string, std::string>> counts;  // by position
  const std::string count = "SELECT n, v, count(*) FROM {} GROUP BY n, v ORDER BY n, v";
  for (int round = 1; round <= 8; ++round) {
    for (const char* change : {"DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE n = 0 LIMIT 90)",
                               "UPDATE bag SET n = 0 WHERE ctid IN (SELECT ctid FROM bag WHERE n = 1 "
                               "LIMIT 70)",
                               "INSERT INTO bag SELECT 1, 'v' FROM generate_series(1, 5)"}) {
      source_->Execute(change);
      counts.emplace_back(source_->Value("SELECT pg_current_wal_insert_lsn()"),
                          Rows(*source_, fmt::format(fmt::runtime(count), "bag")));
    }
  }
  Start();
  CatchUp();
  for (const auto& [position, expected] : counts) {
    const auto as_of = fmt::format("tidemark.as_of_position(NULL::public.bag, '{}')", position);
    EXPECT_EQ(Rows(*store_, fmt::format(fmt::runtime(count), as_of)), expected) << position;
  }
  ExpectSame("SELECT n, v, count(*) FROM bag GROUP BY n, v ORDER BY n, v");
}

TEST_F(StagedRows, ALargeBatchLeavesNothingAndManySmallOnesLittle) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                   "INSERT INTO t SELECT i, 0 FROM generate_series(1, 30000) i");
  Start();
  CatchUp();
  source_->Execute("UPDATE t SET n = 1");
  CatchUp();
  EXPECT_LE(Bytes(), 16'384);  // an empty TOAST index has a page
  for (int i = 1; i <= 300; ++i) {
    source_->Execute(fmt::format("UPDATE t SET n = 2 WHERE id = {}", i));
    if (i % 50 == 0) CatchUp();
  }
  EXPECT_LT(Bytes(), 500'000);
  ExpectSame("SELECT n, count(*) FROM t GROUP BY n ORDER BY n");
  EXPECT_EQ(Versions("t"), 60'300);
}

}  // namespace
}  // namespace tidemark::tests
