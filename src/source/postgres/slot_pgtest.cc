#include "source/postgres/slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "tests/cluster.h"

namespace tidemark::source {
namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class SlotTest : public testing::Test {
 protected:
  static pg::Connection Replication() {
    return pg::Connection::Open({.dsn = tests::Cluster::Shared().Dsn(), .replication = true},
                                Deadline::After(seconds(10)));
  }
  static pg::Connection Plain() { return tests::Cluster::Shared().Connect(); }
  ~SlotTest() override { DropSlot(plain_, "s", Deadline::After(seconds(5))); }

  pg::Connection plain_ = Plain();
};

TEST_F(SlotTest, SnapshotShowsWhatWasCommittedBeforeTheConsistentPoint) {
  plain_.Execute(
      "DROP TABLE IF EXISTS seen; CREATE TABLE seen (a int); INSERT INTO seen VALUES (1)");
  auto replication = Replication();
  const auto slot = CreateSlot(replication, plain_, {.name = "s"});
  plain_.Execute("INSERT INTO seen VALUES (2)");
  auto reader = Plain();
  const pg::Transaction transaction(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  reader.Execute("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(slot.snapshot));
  EXPECT_EQ(reader.Value("SELECT count(*) FROM seen"), "1");
  const auto state = InspectSlot(plain_, "s");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->plugin, "pgoutput");
  EXPECT_EQ(state->database, "postgres");
  EXPECT_EQ(state->confirmed_flush_lsn, slot.consistent_point);
  EXPECT_EQ(state->wal_status, "reserved");
  EXPECT_FALSE(state->two_phase);
  EXPECT_FALSE(state->temporary);
  EXPECT_FALSE(state->active_pid.has_value());
}

TEST_F(SlotTest, TemporarySlotIsGoneWithItsConnection) {
  int walsender = 0;
  {
    auto replication = Replication();
    walsender = replication.server_pid();
    CreateSlot(replication, plain_, {.name = "s", .temporary = true});
    ASSERT_TRUE(InspectSlot(plain_, "s").has_value());
    EXPECT_TRUE(InspectSlot(plain_, "s")->temporary);
  }
  plain_.Execute("SELECT pg_terminate_backend(" + std::to_string(walsender) + ", 5000)");
  EXPECT_FALSE(InspectSlot(plain_, "s").has_value());
}

TEST_F(SlotTest, WaitNamesTheOpenTransactionAndEndsWithIt) {
  auto open = Plain();
  open.Execute("BEGIN; SELECT txid_current()");
  auto replication = Replication();
  auto other = Plain();
  std::vector<SlotBlocker> seen;
  const auto slot = CreateSlot(replication, other,
                               {.name = "s",
                                .deadline = Deadline::After(seconds(30)),
                                .on_wait = [&](const std::vector<SlotBlocker>& blockers) {
                                  seen = blockers;
                                  if (open.InTransaction()) open.Execute("COMMIT");
                                }});
  EXPECT_TRUE(slot.consistent_point.valid());
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].pid, open.server_pid());
  EXPECT_THAT(seen[0].Describe(), HasSubstr("waiting for transaction of pid " +
                                            std::to_string(open.server_pid()) + ", open since 2"));
}

TEST_F(SlotTest, WaitNamesPreparedTransaction) {
  plain_.Execute("DROP TABLE IF EXISTS seen; CREATE TABLE seen (a int)");
  plain_.Execute("BEGIN; INSERT INTO seen VALUES (1); PREPARE TRANSACTION 'held up'");
  auto replication = Replication();
  auto other = Plain();
  std::string text;
  CreateSlot(replication, other, {.name = "s", .on_wait = [&](const auto& blockers) {
                                    if (text.empty()) plain_.Execute("COMMIT PREPARED 'held up'");
                                    text = blockers.at(0).Describe();
                                  }});
  EXPECT_THAT(text, HasSubstr("prepared transaction \"held up\""));
}

TEST_F(SlotTest, DeadlineLeavesNothingBehind) {
  auto open = Plain();
  open.Execute("BEGIN; SELECT txid_current()");
  auto replication = Replication();
  auto other = Plain();
  try {
    CreateSlot(replication, other, {.name = "s", .deadline = Deadline::After(milliseconds(1500))});
    FAIL() << "created behind an open transaction";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kQueryCanceled);
    EXPECT_THAT(error.detail(), HasSubstr("pid " + std::to_string(open.server_pid())));
  }
  EXPECT_FALSE(InspectSlot(plain_, "s").has_value());
  EXPECT_EQ(plain_.Value("SELECT count(*) FROM pg_stat_activity WHERE pid = $1::int",
                         {std::to_string(replication.server_pid())}),
            "0");
}

TEST_F(SlotTest, StopLeavesNothingBehind) {
  auto open = Plain();
  open.Execute("BEGIN; SELECT txid_current()");
  auto replication = Replication();
  auto other = Plain();
  std::stop_source stop;
  EXPECT_THROW(CreateSlot(replication, other,
                          {.name = "s",
                           .stop = stop.get_token(),
                           .on_wait = [&](const auto&) { stop.request_stop(); }}),
               base::Error);
  EXPECT_FALSE(InspectSlot(plain_, "s").has_value());
}

TEST_F(SlotTest, ExistingSlotIsKept) {
  plain_.Execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
  auto replication = Replication();
  try {
    CreateSlot(replication, plain_, {.name = "s"});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kDuplicateObject);
  }
  EXPECT_TRUE(InspectSlot(plain_, "s").has_value());
}

TEST_F(SlotTest, DropIsIdempotentAndWaitsForTheReaderOnlySoLong) {
  DropSlot(plain_, "s", Deadline::After(seconds(1)));
  auto replication = Replication();
  CreateSlot(replication, plain_, {.name = "s"});
  // A walsender holds the slot from START_REPLICATION on.
  replication.Execute(
      "START_REPLICATION SLOT \"s\" LOGICAL 0/0 (proto_version '1', publication_names 'none')");
  ASSERT_TRUE(InspectSlot(plain_, "s")->active_pid.has_value());
  try {
    DropSlot(plain_, "s", Deadline::After(milliseconds(300)));
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kObjectInUse);
  }
  { auto closed = std::move(replication); }
  DropSlot(plain_, "s", Deadline::After(seconds(10)));
  EXPECT_FALSE(InspectSlot(plain_, "s").has_value());
}

}  // namespace
}  // namespace tidemark::source
