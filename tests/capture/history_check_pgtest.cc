// verify --history: each kind of tampering with what the store keeps is found and named, and
// nothing is complained of where nothing was touched, whatever has been pruned, erased or changed
// its key.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporal/prune.h"
#include "temporal/store.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HistoryCheck : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                     "INSERT INTO t SELECT i, 0 FROM generate_series(1, 50) i; "
                     "CREATE TABLE quiet (id int PRIMARY KEY)");
    Start();
    CatchUp();
    for (int round = 1; round <= 6; ++round) {
      source_->Execute("UPDATE t SET n = n + 1");
      source_->Execute("DELETE FROM t WHERE id = " + std::to_string(round));
      source_->Execute("INSERT INTO t VALUES (" + std::to_string(100 + round) + ", 0)");
      CatchUp();
    }
    Stop();
    const auto id = store_->Value("SELECT id FROM tidemark.dataset WHERE table_name = 't'");
    current_ = "tidemark_current.d" + id;
    history_ = "tidemark_history.d" + id;
    dataset_ = id;
    last_ = store_->Value("SELECT max(tx) FROM tidemark.tx");
  }
  std::vector<std::string> Faults() {
    for (const auto& dataset : temporal::LoadAttachedDatasets(*store_)) {
      if (dataset.name.name == "t") return temporal::CheckHistory(*store_, dataset).faults;
    }
    return {"there is no t"};
  }
  /// What is found once `sql` has been done; then it is undone.
  std::vector<std::string> FaultsAfter(const std::string& sql) {
    auto other = temporal::OpenStore(options_.store_dsn, base::Deadline::After(20s));
    const auto save = "CREATE TEMPORARY TABLE saved_c AS SELECT * FROM " + current_ +
                      "; CREATE TEMPORARY TABLE saved_h AS SELECT tableoid::regclass::text AS kept_in, "
                      "h.* FROM " + history_ + " h" +
                      "; CREATE TEMPORARY TABLE saved_v AS SELECT * FROM tidemark.version" +
                      "; CREATE TEMPORARY TABLE saved_m AS SELECT * FROM tidemark.basis_member";
    other.Execute(save);
    EXPECT_GT(other.Execute(sql).affected(), 0) << sql;
    auto faults = Faults();
    other.Execute("DELETE FROM " + current_ + "; INSERT INTO " + current_ +
                  " SELECT * FROM saved_c; DELETE FROM " + history_ +
                  "; DELETE FROM tidemark.version; "
                  "INSERT INTO tidemark.version SELECT * FROM saved_v; "
                  "DELETE FROM tidemark.basis_member; "
                  "INSERT INTO tidemark.basis_member SELECT * FROM saved_m");
    const auto columns = other.Value(
        "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute "
        "WHERE attrelid = 'saved_h'::regclass AND attnum > 1 AND NOT attisdropped");
    const auto partitions = other.Execute("SELECT DISTINCT kept_in FROM saved_h");
    for (int i = 0; i < partitions.rows(); ++i) {
      other.Execute(
          fmt::format("INSERT INTO {0} ({1}) SELECT {1} FROM saved_h WHERE kept_in = '{0}'",
                      partitions.str(i, 0), columns));
    }
    other.Execute("DROP TABLE saved_c, saved_h, saved_v, saved_m");
    return faults;
  }

  std::string current_, history_, dataset_, last_;
};

TEST_F(HistoryCheck, WhatWasPublishedHolds) { EXPECT_THAT(Faults(), IsEmpty()); }

TEST_F(HistoryCheck, VersionThatReachesBeyondItsSuccessorIsFound) {
  EXPECT_THAT(FaultsAfter("UPDATE " + history_ + " SET _to = " + last_ +
                          " WHERE id = 20 AND n = 2"),
              Contains(HasSubstr("two versions of key (20) overlap")));
}

TEST_F(HistoryCheck, ClosedVersionThatReachesIntoTheCurrentRowIsFound) {
  EXPECT_THAT(FaultsAfter("UPDATE " + current_ + " SET _from = 2 WHERE id = 20"),
              Contains(HasSubstr("two versions of key (20) overlap")));
}

TEST_F(HistoryCheck, ForgedVersionIsFound) {
  // In the gap after its deletion, so that it overlaps nothing.
  EXPECT_THAT(FaultsAfter("INSERT INTO " + history_ + "_open (id, n, _from, _to) SELECT 1, 99, "
                                                      "max(_to), " +
                          last_ + " FROM " + history_ + " WHERE id = 1"),
              Contains(HasSubstr("are found")));
}

TEST_F(HistoryCheck, VersionThatEndsBeforeItBeginsIsFound) {
  EXPECT_THAT(FaultsAfter("UPDATE " + history_ + " SET _from = _to + 1 WHERE id = 20 AND n = 2"),
              Contains(HasSubstr("a version of key (20) begins at tx")));
}

TEST_F(HistoryCheck, EndThatNoPublishKnowsIsFound) {
  EXPECT_THAT(FaultsAfter("UPDATE " + current_ + " SET _from = 1000000 WHERE id = 20"),
              Contains(HasSubstr("tx 1000000, which was never published")));
}

TEST_F(HistoryCheck, EndInAPublishOfAnotherTableIsFound) {
  Start();
  source_->Execute("INSERT INTO quiet VALUES (1)");
  CatchUp();
  Stop();
  const auto tx = store_->Value("SELECT max(tx) FROM tidemark.tx");
  EXPECT_THAT(FaultsAfter("UPDATE " + current_ + " SET _from = " + tx + " WHERE id = 20"),
              Contains(HasSubstr("changed nothing of this dataset")));
}

TEST_F(HistoryCheck, CurrentRowThatIsGoneIsFound) {
  EXPECT_THAT(FaultsAfter("DELETE FROM " + current_ + " WHERE id = 20"),
              Contains(HasSubstr("49 rows are current, but its version counts 50")));
}

TEST_F(HistoryCheck, ClosedVersionThatIsGoneIsFound) {
  EXPECT_THAT(FaultsAfter("DELETE FROM " + history_ + " WHERE id = 20 AND n = 2"),
              Contains(HasSubstr("there were 50 rows, but 49 are found")));
}

TEST_F(HistoryCheck, CountsThatWereChangedAreFound) {
  EXPECT_THAT(FaultsAfter("UPDATE tidemark.version SET live_rows = 7 WHERE dataset = " + dataset_),
              Contains(HasSubstr("its version counts 7")));
  EXPECT_THAT(FaultsAfter("UPDATE tidemark.basis_member SET live_rows = 7 WHERE dataset = " +
                          dataset_ + " AND tx = " + last_),
              Contains(HasSubstr("there were 7 rows")));
  EXPECT_THAT(FaultsAfter("UPDATE tidemark.basis_member SET puts = 1 WHERE dataset = " + dataset_ +
                          " AND puts > 40"),
              Contains(HasSubstr("put 1 rows, but")));
}

TEST_F(HistoryCheck, WhatWasPrunedOrErasedIsNoFault) {
  options_.history.rows_aimed = 10;
  Start();
  for (int round = 0; round < 3; ++round) {
    source_->Execute("UPDATE t SET n = n WHERE id > 30");
    CatchUp();
  }
  Stop();
  auto store = temporal::OpenStore(options_.store_dsn, base::Deadline::After(20s));
  temporal::Erase(store, {"public", "t"}, {{"id", "20"}});
  EXPECT_THAT(Faults(), IsEmpty());
  const auto pruned =
      temporal::Prune(store, {{options_.name, "0s"}}, base::Deadline::After(20s), {});
  int64_t partitions = 0;
  for (const auto& each : pruned) partitions += each.partitions;
  EXPECT_GT(partitions, 0);
  EXPECT_THAT(Faults(), IsEmpty());
  // What is still kept is still looked at.
  EXPECT_THAT(FaultsAfter("UPDATE " + current_ + " SET _from = 1000000 WHERE id = 30"),
              Contains(HasSubstr("never published")));
}

TEST_F(HistoryCheck, VersionsOfAFormerKeyAreComparedByIt) {
  Start();
  source_->Execute("ALTER TABLE t ADD k text; UPDATE t SET k = 'k' || id; "
                   "ALTER TABLE t ALTER k SET NOT NULL; ALTER TABLE t DROP CONSTRAINT t_pkey; "
                   "ALTER TABLE t ADD PRIMARY KEY (k)");
  source_->Execute("UPDATE t SET n = n + 1");
  source_->Execute("UPDATE t SET n = n + 1");
  CatchUp();
  Stop();
  EXPECT_THAT(Faults(), IsEmpty());
  EXPECT_THAT(FaultsAfter("UPDATE " + current_ + " SET _from = (SELECT max(_from) FROM " +
                          history_ +
                          " WHERE k = 'k20') WHERE k = 'k20'"),
              Contains(HasSubstr("(k20) overlap")));
  EXPECT_THAT(FaultsAfter("UPDATE " + history_ + " SET _from = 1 WHERE id = 20 AND n = 2"),
              Contains(HasSubstr("(20) overlap")));
}

}  // namespace
}  // namespace tidemark::tests
