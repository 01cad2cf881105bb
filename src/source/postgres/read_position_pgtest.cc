// Where the log of a server ends, for who waits for it.
#include "source/postgres/read_position.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/cluster.h"

namespace tidemark::source {
namespace {

using base::Lsn;
using std::chrono::seconds;

class EndOfLog : public testing::Test {
 protected:
  EndOfLog() : cluster_({}, false, tests::SourceBinaries()) {
    server_.Execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
  }
  Lsn Ask(const std::string& function) {
    return Lsn::Parse(server_.Value("SELECT " + function + "()"));
  }

  tests::Cluster cluster_;  // of its own: nobody else makes the server write
  pg::Connection server_ = cluster_.Connect(), other_ = cluster_.Connect();
};

TEST_F(EndOfLog, IsNotWhatATransactionThatStillRunsHasLeftUnwritten) {
  other_.Execute("BEGIN; INSERT INTO t VALUES (2)");
  const auto known = Ask("pg_current_wal_flush_lsn");
  ASSERT_GT(Ask("pg_current_wal_insert_lsn"), known);
  const auto deadline = base::Deadline::After(seconds(5));
  const auto end = CurrentEnd(server_);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GE(end, known);
  EXPECT_LE(end, Ask("pg_current_wal_flush_lsn"));
  other_.Execute("COMMIT");
}

TEST_F(EndOfLog, IsBehindACommitThatNobodyWaitedFor) {
  for (int i = 0; i < 10; ++i) {
    other_.Execute("SET synchronous_commit = off; INSERT INTO t VALUES (3)");
    const auto committed = Lsn::Parse(other_.Value("SELECT pg_current_wal_insert_lsn()"));
    EXPECT_GE(CurrentEnd(server_), committed);
  }
}

}  // namespace
}  // namespace tidemark::source
