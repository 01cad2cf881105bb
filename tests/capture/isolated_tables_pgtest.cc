// A commit that the store refuses: the mirror stops there with the reason and everything before it
// readable, and `tidemark resync TABLE` is the way past it. With isolate_failed_tables only the
// table that is refused stands still, is read whole again until the store takes it, and the others
// go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "temporal/resync.h"
#include "temporal/status.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class IsolatedTables : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, "
                     "2); "
                     "CREATE TABLE other (id int PRIMARY KEY, n int); INSERT INTO other VALUES (1, "
                     "1)");
  }
  void Begin(bool isolate) {
    options_.isolate_failed_tables = isolate;
    Start();
    CatchUp();
    current_ = store_->Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset "
                             "WHERE table_name = 't'");
  }
  /// The store takes no n of t beyond 99.
  void Refuse() { store_->Execute("ALTER TABLE " + current_ +
                                  " ADD CONSTRAINT few CHECK (n < 100)"); }
  void Allow() { store_->Execute("ALTER TABLE " + current_ + " DROP CONSTRAINT few"); }
  nlohmann::json StatusOf(const std::string& table) {
    const auto status = nlohmann::json::parse(temporal::LoadStatus(*store_));
    for (const auto& dataset : status["mirrors"][0]["datasets"]) {
      if (dataset["name"] == "public." + table) return dataset;
    }
    return {};
  }

  std::string current_;
};

TEST_F(IsolatedTables, WithoutItTheMirrorStopsAtTheCommitAndResyncIsTheWayPastIt) {
  Begin(false);
  Refuse();
  source_->Execute("UPDATE other SET n = 2");
  source_->Execute("UPDATE t SET n = 100 WHERE id = 1; UPDATE other SET n = 3");
  Await("SELECT state = 'failed' FROM tidemark.progress");
  Await("SELECT n = 2 FROM other");  // everything before it
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|1\n2|2\n");
  EXPECT_THAT(State(), HasSubstr("few"));
  EXPECT_THAT(State(), HasSubstr("23514"));
  // The table is read whole as soon as that is possible, and the mirror goes on meanwhile.
  temporal::RequestResync(*store_, {{"public", "t"}});
  Await("SELECT n = 3 FROM other");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|1\n2|2\n");
  Allow();
  Await("SELECT n = 100 FROM t WHERE id = 1");
  source_->Execute("UPDATE t SET n = 5");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(IsolatedTables, OthersGoOnWhileTheRefusedOneStandsStillAndIsReadAgainUntilTheStoreTakesIt) {
  Begin(true);
  Refuse();
  source_->Execute("BEGIN; UPDATE t SET n = 100 WHERE id = 1; UPDATE other SET n = 3; COMMIT");
  Await("SELECT n = 3 FROM other");
  source_->Execute("INSERT INTO t VALUES (3, 3); INSERT INTO other VALUES (2, 2)");
  Await("SELECT count(*) = 2 FROM other");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|1\n2|2\n");
  // Why, is said for as long as it lasts.
  Await("SELECT problems::text LIKE '%few%' FROM tidemark.progress");
  const auto standing = StatusOf("t");
  EXPECT_THAT(standing["resync"]["reason"].get<std::string>(), HasSubstr("few"));
  EXPECT_EQ(standing["resync"]["sqlstate"], "23514");
  EXPECT_TRUE(StatusOf("other")["resync"].is_null());
  EXPECT_EQ(store_->Value("SELECT state FROM tidemark.progress"), "streaming");
  // What was durable is known to the next process, too.
  Stop();
  source_->Execute("DELETE FROM t WHERE id = 2; UPDATE other SET n = 7 WHERE id = 2");
  Start();
  Await("SELECT n = 7 FROM other WHERE id = 2");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|1\n2|2\n");
  Allow();
  Await("SELECT n = 100 FROM t WHERE id = 1");
  source_->Execute("UPDATE t SET n = n + 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
  EXPECT_TRUE(StatusOf("t")["resync"].is_null());
  Await("SELECT problems::text NOT LIKE '%few%' FROM tidemark.progress");
}

TEST_F(IsolatedTables, AMirrorOfOneTableGoesOnWithThatTableNamed) {
  source_->Execute("CREATE PUBLICATION tidemark FOR TABLE t");
  Begin(true);
  Refuse();
  source_->Execute("UPDATE t SET n = 5 WHERE id = 1");
  source_->Execute("UPDATE t SET n = 100 WHERE id = 1; UPDATE t SET n = 6 WHERE id = 2");
  Await("SELECT problems::text LIKE '%few%' FROM tidemark.progress");
  // Again and again it is refused, and the mirror has not stopped.
  Await("SELECT count(*) > 2 FROM tidemark.capture WHERE kind = 'complete'");
  EXPECT_EQ(store_->Value("SELECT state FROM tidemark.progress"), "streaming");
  EXPECT_EQ(StatusOf("t")["resync"]["sqlstate"], "23514");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t ORDER BY id"), "1|5\n2|2\n");
  CatchUp();  // the source's log is not held back
  Allow();
  Await("SELECT n = 100 FROM t WHERE id = 1");
  source_->Execute("UPDATE t SET n = n + 1");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

TEST_F(IsolatedTables, WithoutItAMirrorOfOneTableGoesOnWhileItsReadingIsRefused) {
  source_->Execute("CREATE PUBLICATION tidemark FOR TABLE t");
  Begin(false);
  Refuse();
  source_->Execute("UPDATE t SET n = 100 WHERE id = 1");
  Await("SELECT state = 'failed' FROM tidemark.progress");
  temporal::RequestResync(*store_, {{"public", "t"}});
  Await("SELECT problems::text LIKE '%few%' AND state = 'streaming' FROM tidemark.progress");
  Allow();
  Await("SELECT n = 100 FROM t WHERE id = 1");
}

TEST_F(IsolatedTables, RefusalByATriggerOfTheStoreIsolatesItsTable) {
  Begin(true);
  store_->Execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN RAISE EXCEPTION 'not this one'; END $$; "
                  "CREATE TRIGGER refuse BEFORE DELETE ON " + current_ +
                  " FOR EACH ROW EXECUTE FUNCTION refuse()");
  source_->Execute("DELETE FROM t WHERE id = 1; UPDATE other SET n = 4");
  Await("SELECT n = 4 FROM other");
  EXPECT_THAT(StatusOf("t")["resync"]["reason"].get<std::string>(), HasSubstr("not this one"));
  store_->Execute("DROP TRIGGER refuse ON " + current_);
  Await("SELECT count(*) = 1 FROM t");
}

TEST_F(IsolatedTables, TruncateThatIsRefusedIsolatesItsTable) {
  Begin(true);
  store_->Execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN RAISE EXCEPTION 'not this one'; END $$; "
                  "CREATE TRIGGER refuse BEFORE DELETE ON " + current_ +
                  " FOR EACH ROW EXECUTE FUNCTION refuse()");
  source_->Execute("BEGIN; TRUNCATE t, other; INSERT INTO other VALUES (9, 9); COMMIT");
  Await("SELECT count(*) = 1 AND min(id) = 9 FROM other");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM t"), "2");
  store_->Execute("DROP TRIGGER refuse ON " + current_);
  Await("SELECT count(*) = 0 FROM t");
}

}  // namespace
}  // namespace tidemark::tests
