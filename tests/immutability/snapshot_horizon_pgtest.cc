// A statement AS OF an instant asks whether its snapshot reaches it, unless every snapshot does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/identifier.h"
#include "temporal/snapshot_horizon.h"
#include "tests/mirror_fixture.h"
#include "tests/standby.h"

namespace tidemark::tests {
namespace {

class SnapshotHorizon : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    Start();
    CatchUp();
  }
  // The newest instant there is.
  std::string Update(int n) {
    source_->Execute(fmt::format("UPDATE t SET n = {}", n));
    CatchUp();
    return base::QuoteLiteral(store_->Value("SELECT max(system_time) FROM tidemark.basis"));
  }
  // Whether all that is published is seen by all, and a look has found it to be so.
  bool Advance() {
    horizon_.Advance(*store_);
    return store_->Value("SELECT tx_seen_by_all = (SELECT max(tx_last) FROM tidemark.basis_journal) "
                         "FROM tidemark.journal") == "t";
  }
  bool AdvanceWithin(base::Deadline deadline) {
    while (!Advance()) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }
  std::string Question(const std::string& instant) {
    return "SELECT n FROM tidemark.as_of(NULL::public.t, " + instant + ")";
  }
  bool Checks(pg::Connection& on, const std::string& instant) {
    return Rows(on, "EXPLAIN " + Question(instant)).find("visible_tx") != std::string::npos;
  }
  pg::Connection Reader() { return Cluster::Shared().Connect(store_->Value("SELECT current_database()")); }

  temporal::SnapshotHorizon horizon_;
};

TEST_F(SnapshotHorizon, WhatEverySnapshotSeesIsNotAskedFor) {
  const auto before = Update(1);
  ASSERT_TRUE(AdvanceWithin(base::Deadline::After(30s)));
  auto old = Reader();
  old.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  const auto after = Update(2);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Advance());
  EXPECT_FALSE(Checks(*store_, before));
  EXPECT_TRUE(Checks(*store_, after));
  EXPECT_EQ(store_->Value(Question(before)), "1");
  EXPECT_EQ(store_->Value(Question(after)), "2");
  old.Execute("COMMIT");
  ASSERT_TRUE(AdvanceWithin(base::Deadline::After(30s)));
  EXPECT_FALSE(Checks(*store_, after));
  EXPECT_EQ(store_->Value(Question(after)), "2");
}

TEST_F(SnapshotHorizon, ATransactionThatStillRunsIsWaitedFor) {
  auto writer = Reader();
  writer.Execute("BEGIN; SELECT pg_current_xact_id()");
  Update(1);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Advance());
  writer.Execute("COMMIT");
  EXPECT_TRUE(AdvanceWithin(base::Deadline::After(30s)));
}

TEST_F(SnapshotHorizon, APlanThatIsYoungerThanItsSnapshotFindsOut) {
  const auto before = Update(1);
  auto old = Reader();
  old.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
  const auto snapshot = base::QuoteLiteral(old.Value("SELECT pg_export_snapshot()"));
  const auto after = Update(2);
  for (int i = 0; i < 5; ++i) Advance();
  auto reader = Reader();
  reader.Execute("SET plan_cache_mode = force_generic_plan; PREPARE q AS " + Question(after) +
                 "; PREPARE p AS " + Question(before));
  EXPECT_EQ(reader.Value("EXECUTE q"), "2");
  EXPECT_EQ(reader.Value("EXECUTE p"), "1");
  reader.Execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT " + snapshot);
  EXPECT_EQ(reader.Value("EXECUTE p"), "1");
  try {
    ADD_FAILURE() << reader.Value("EXECUTE q");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kSerializationFailure) << error.Full();
  }
  reader.Execute("ROLLBACK");
  EXPECT_EQ(reader.Value("EXECUTE q"), "2");
}

TEST_F(SnapshotHorizon, AStandbyGoesOnAsking) {
  const auto instant = Update(1);
  ASSERT_TRUE(AdvanceWithin(base::Deadline::After(30s)));
  Stop();
  const Standby standby(Cluster::Shared());
  standby.AwaitReplay(store_->Value("SELECT pg_current_wal_lsn()"));
  auto reader = standby.Connect(store_->Value("SELECT current_database()"));
  EXPECT_EQ(reader.Value("SELECT tx_seen_by_all > 0 FROM tidemark.journal"), "t");
  EXPECT_FALSE(Checks(*store_, instant));
  EXPECT_TRUE(Checks(reader, instant));
  EXPECT_EQ(reader.Value(Question(instant)), "1");
}

}  // namespace
}  // namespace tidemark::tests
