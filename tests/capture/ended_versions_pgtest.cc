// Versions that a batch's updates end are kept by a trigger of the current table: on stores of an
// earlier version, in sessions that fire no other trigger, not for other people's updates, and
// nothing is published where it does not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class EndedVersions : public MirrorFixture {
 protected:
  void Begin() {
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                     "INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i");
    Start();
    CatchUp();
    current_ = store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset");
  }
  /// n of all rows becomes `n`, as of the position that is returned.
  std::string Update(int n) {
    source_->Execute("UPDATE t SET n = " + std::to_string(n));
    return CatchUp();
  }
  std::string AsOf(const std::string& position) {
    return Rows(*store_, "SELECT count(*), sum(n) FROM tidemark.as_of_position(NULL::public.t, '" +
                             position + "')");
  }
  std::string History() {
    return store_->Value("SELECT count(*) FROM tidemark_history.d" + current_.substr(18));
  }

  std::string current_;
};

TEST_F(EndedVersions, UpdatesByOthersEndNone) {
  Begin();
  const auto first = Update(1);
  EXPECT_EQ(History(), "10");
  store_->Execute("UPDATE " + current_ + " SET n = n");
  EXPECT_EQ(History(), "10");
  Update(2);
  EXPECT_EQ(History(), "20");
  EXPECT_EQ(AsOf(first), "10|10\n");
}

TEST_F(EndedVersions, NothingIsPublishedWhereTheyWouldNotBeKept) {
  Begin();
  const auto first = Update(1);
  store_->Execute("ALTER TABLE " + current_ + " DISABLE TRIGGER keep_ended");
  source_->Execute("UPDATE t SET n = 2");
  const auto deadline = base::Deadline::After(30s);
  while (!deadline.passed() && State().find("keep_ended") == std::string::npos) {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(State(), HasSubstr("failed"));
  EXPECT_THAT(State(), HasSubstr("the trigger that keeps the history of public.t is gone"));
  EXPECT_EQ(store_->Value("SELECT sum(n) FROM t"), "10");
  EXPECT_EQ(History(), "10");
  store_->Execute("ALTER TABLE " + current_ + " ENABLE ALWAYS TRIGGER keep_ended");
  while (!deadline.passed() && store_->Value("SELECT sum(n) FROM t") != "20") {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(AsOf(first), "10|10\n");
  EXPECT_EQ(History(), "20");
}

TEST_F(EndedVersions, AreKeptInSessionsThatFireNoOtherTrigger) {
  store_->Execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = "
                  "replica', current_database()); END $$");
  Begin();
  const auto first = Update(1);
  Update(2);
  EXPECT_EQ(AsOf(first), "10|10\n");
  EXPECT_EQ(History(), "20");
}

TEST_F(EndedVersions, AreKeptInAStoreOfAnEarlierVersion) {
  Begin();
  const auto first = Update(1);
  Stop();
  store_->Execute("DROP FUNCTION tidemark.keep_ended() CASCADE; "
                  "DROP FUNCTION tidemark.keep_ended_of(regclass); "
                  // What came after it.
                  "DROP FUNCTION tidemark.seen_by_all, tidemark.checked_visible_tx; "
                  "DROP TABLE tidemark.snapshot_horizon; "
                  "ALTER TABLE tidemark.journal DROP tx_seen_by_all, DROP tx_span; "
                  "DROP FUNCTION tidemark.note_span CASCADE; "
                  "DO $$ DECLARE f text; BEGIN "
                  "FOR f IN SELECT pg_get_functiondef(oid) FROM pg_proc WHERE prosrc ~ 'w.skip_empty' "
                  "LOOP EXECUTE regexp_replace(f, '\\(NOT w.skip_empty OR .*\\)\\)', "
                  "'(NOT w.skip_empty OR v.\"system_from\" < v.\"system_to\")'); END LOOP; END $$; "
                  "UPDATE tidemark.store SET schema_version = 16");
  const std::string how = "SELECT count(*) FROM pg_proc WHERE prosrc ~ 'w.skip_empty' AND prosrc ~ 'j.tx_span'";
  EXPECT_EQ(store_->Value(how), "0");
  Start();
  Update(2);
  EXPECT_EQ(AsOf(first), "10|10\n");
  EXPECT_EQ(History(), "20");
  EXPECT_EQ(store_->Value(how), "2");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.versions(NULL::public.t, 'system', 'between', "
                          "'-infinity', 'infinity')"),
            "30");
}

}  // namespace
}  // namespace tidemark::tests
