// What COPY reads in a snapshot that is older than the names of what it reads.
#include "capture/table_copy.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "tests/cluster.h"

namespace tidemark::capture {
namespace {

class TableCopy : public testing::Test {
 protected:
  TableCopy() {
    static int number = 0;
    const auto name = "copied_table" + std::to_string(++number);
    tests::Cluster::SharedSource().CreateDatabase(name);
    source_.emplace(tests::Cluster::SharedSource().Connect(name));
    other_.emplace(tests::Cluster::SharedSource().Connect(name));
    other_->Execute("CREATE TABLE t (id int PRIMARY KEY, gone int, a int, b int); "
                    "ALTER TABLE t DROP gone; INSERT INTO t VALUES (1, 1, 2); "
                    "CREATE TABLE u (LIKE t INCLUDING ALL); "
                    "CREATE TABLE p (id int) PARTITION BY LIST (id)");
  }
  /// What becomes of a copy of `table`, with `meanwhile` between its snapshot and its lock.
  std::string CopyOf(const std::string& table, const std::string& meanwhile) {
    pg::Transaction snapshot(*source_, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const auto oid = static_cast<pg::Oid>(
        std::stoul(source_->Value("SELECT $1::regclass::oid", {"public." + table})));
    const auto relation = pg::LoadRelations(*source_, std::vector{oid}).at(0);
    other_->Execute(meanwhile);
    source_->Execute("SELECT * FROM public." + table);
    try {
      RequireUnchanged(*source_, relation);
      return "";
    } catch (const base::Error& error) {
      return error.state().str();
    }
  }

  std::optional<pg::Connection> source_, other_;
};

TEST_F(TableCopy, IsRefusedWhenNamesChangeBetweenItsSnapshotAndItsLock) {
  EXPECT_EQ(CopyOf("t", "UPDATE t SET a = 5; ALTER TABLE t ADD c int"), "");
  EXPECT_EQ(CopyOf("t", "ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO a; "
                        "ALTER TABLE t RENAME x TO b"),
            "40001");
  EXPECT_EQ(CopyOf("t", "ALTER TABLE t DROP a; ALTER TABLE t ADD a int"), "40001");
  EXPECT_EQ(CopyOf("t", "ALTER TABLE t RENAME TO v; ALTER TABLE u RENAME TO t"), "40001");
  EXPECT_EQ(CopyOf("t", ""), "");
}

TEST_F(TableCopy, IsRefusedWhenRowsAreTruncatedOrRewrittenMeanwhile) {
  EXPECT_EQ(CopyOf("t", "TRUNCATE t"), "40001");
  EXPECT_EQ(CopyOf("t", "ALTER TABLE t ALTER a TYPE bigint"), "40001");
  EXPECT_EQ(CopyOf("p", "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)"), "");
}

}  // namespace
}  // namespace tidemark::capture
