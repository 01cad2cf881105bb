// Tables that inherit from others: a SELECT of a parent is answered as the source answers it, at
// latest and at every instant since, whoever has become or ceased to be an heir meanwhile.
#include "capture/verify.h"
#include "tests/capture/inheritance_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Inheritance, TheFirstCopyShowsAParentWithItsHeirs) {
  Step();
  EXPECT_EQ(LinksOpen(), "leaf|left_heir\nleft_heir|base\nright_heir|base\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public.base"), "20");
  ExpectSame("SELECT c.relname, p.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
             "JOIN pg_class p ON p.oid = i.inhparent WHERE c.relnamespace = 'public'::regnamespace "
             "ORDER BY 1, 2");
  EXPECT_EQ(Problems().find("inherit"), std::string::npos) << Problems();
}

TEST_F(Inheritance, ChangesReachTheParentsThatShowThem) {
  Step();
  source_->Execute("UPDATE base SET n = n + 100; INSERT INTO leaf VALUES (36, 0, 'leaf', NULL)");
  Step();
  source_->Execute("UPDATE ONLY base SET s = 'own'; DELETE FROM base WHERE id % 5 = 0; "
                   "UPDATE leaf SET id = 40 WHERE id = 31");
  Step();
  source_->Execute("BEGIN; DELETE FROM ONLY left_heir; UPDATE right_heir SET own = 9, s = 'r'; "
                   "INSERT INTO base VALUES (6, 6, 'six'); COMMIT");
  Step();
}

TEST_F(Inheritance, TruncateReachesHeirsUnlessItSaysOnly) {
  Step();
  source_->Execute("TRUNCATE ONLY base");
  Step();
  source_->Execute("INSERT INTO base VALUES (1, 1, 'again'); TRUNCATE left_heir");
  Step();
  source_->Execute("TRUNCATE base; INSERT INTO right_heir VALUES ('new', 1, 26, 26)");
  Step();
}

TEST_F(Inheritance, LinksEndAndBegin) {
  Step();
  source_->Execute("ALTER TABLE right_heir NO INHERIT base");
  Step();
  source_->Execute("UPDATE right_heir SET n = -n; UPDATE base SET n = 7 WHERE id = 1");
  Step();
  source_->Execute("ALTER TABLE right_heir INHERIT base; ALTER TABLE leaf NO INHERIT left_heir");
  Step();
  // By one way, by two ways at once, and by the other way alone.
  source_->Execute("ALTER TABLE leaf ADD own int; ALTER TABLE leaf INHERIT right_heir");
  Step();
  source_->Execute("ALTER TABLE leaf INHERIT base; UPDATE leaf SET own = 3");
  Step();
  source_->Execute("ALTER TABLE right_heir NO INHERIT base");
  Step();
  EXPECT_EQ(LinksOpen(), "leaf|base\nleaf|right_heir\nleft_heir|base\n");
}

TEST_F(Inheritance, HeirsComeAndGoAsTables) {
  Step();
  source_->Execute("BEGIN; CREATE TABLE late (PRIMARY KEY (id)) INHERITS (left_heir, right_heir); "
                   "INSERT INTO late SELECT i, i, 'late', 'l', 2 FROM generate_series(41, 45) i; COMMIT");
  ExpectSoon("SELECT * FROM late ORDER BY id");
  Step();
  source_->Execute("UPDATE base SET n = 0 WHERE id > 40; DROP TABLE leaf");
  tables_.pop_back();
  Step();
  // Made again under the same name, with other columns of its own: the same dataset.
  source_->Execute("DROP TABLE late; CREATE TABLE late (mine int, PRIMARY KEY (id)) INHERITS (base); "
                   "INSERT INTO late (id, n, s, mine) VALUES (51, 51, 'made again', 4)");
  ExpectSoon("SELECT id, mine FROM late ORDER BY id");
  Step();
  EXPECT_EQ(LinksOpen(), "late|base\nleft_heir|base\nright_heir|base\n");
}

TEST_F(Inheritance, AFamilyGoesOnAfterARestart) {
  Step();
  Stop();
  source_->Execute("UPDATE base SET n = n + 1; ALTER TABLE right_heir NO INHERIT base; "
                   "CREATE TABLE late (PRIMARY KEY (id)) INHERITS (leaf); "
                   "INSERT INTO late VALUES (41, 41, 'late', 'l')");
  Start();
  ExpectSoon("SELECT * FROM late ORDER BY id");
  Step();
  Stop();
  Start();
  source_->Execute("ALTER TABLE right_heir INHERIT base; UPDATE base SET s = 'after'");
  Step();
}

TEST_F(Inheritance, AMirrorFromBeforeLinksIsJoinedWhenItStarts) {
  CatchUp();
  const auto before = CatchUp();
  Stop();
  store_->Execute("ALTER TABLE left_heir NO INHERIT base; ALTER TABLE right_heir NO INHERIT base; "
                  "ALTER TABLE leaf NO INHERIT left_heir; DELETE FROM tidemark.inheritance");
  Start();
  Step();
  EXPECT_EQ(AsOf(before, "count(*)", "left_heir"), "5\n");
}

TEST_F(Inheritance, HeirsThatAreNotMirroredAreNamedAndNoOthers) {
  Step();
  AwaitProblem("inherit", false);
  source_->Execute("CREATE UNLOGGED TABLE scratch () INHERITS (right_heir); "
                   "INSERT INTO scratch VALUES ('s', 1, 91, 91)");
  AwaitProblem("Not mirrored: public.scratch.");
  EXPECT_THAT(Problems(), HasSubstr("\"table\": \"public.base\""));
  EXPECT_THAT(Problems(), HasSubstr("\"table\": \"public.right_heir\""));
  EXPECT_THAT(Problems(), Not(HasSubstr("\"table\": \"public.left_heir\"")));
  // Through it another one inherits that is mirrored.
  source_->Execute("CREATE TABLE below (PRIMARY KEY (id)) INHERITS (scratch); "
                   "INSERT INTO below VALUES ('b', 1, 92, 92)");
  ExpectSoon("SELECT * FROM below");
  const auto count = "SELECT count(*) FROM right_heir WHERE id = 92";
  ExpectSoon(count);
  EXPECT_EQ(LinksOpen(),
            "below|right_heir\nleaf|left_heir\nleft_heir|base\nright_heir|base\n");
  source_->Execute("ALTER TABLE scratch SET LOGGED");
  ExpectSoon("SELECT * FROM scratch");
  Step();
  AwaitProblem("inherit", false);
}

TEST_F(Inheritance, AnHeirThatIsNotPublishedForAWhileIsLackingMeanwhile) {
  source_->Execute("DROP PUBLICATION tidemark; "
                   "CREATE PUBLICATION tidemark FOR TABLE base, left_heir, leaf, right_heir");
  Step();
  source_->Execute("ALTER PUBLICATION tidemark DROP TABLE leaf");
  AwaitProblem("Not mirrored: public.leaf.");
  const auto deadline = base::Deadline::After(30s);
  while (store_->Value("SELECT count(*) FROM base") != "15" && !deadline.passed()) {
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(store_->Value("SELECT count(*) FROM base"), "15");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM leaf"), "5");
  source_->Execute("UPDATE leaf SET n = -1; ALTER PUBLICATION tidemark ADD TABLE leaf");
  Step();
  AwaitProblem("inherit", false);
}

TEST_F(Inheritance, AReaderInTheWayDelaysALinkAndNothingElse) {
  Step();
  auto reader = Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
  reader.Execute("BEGIN; SELECT count(*) FROM right_heir");
  source_->Execute("ALTER TABLE right_heir NO INHERIT base; UPDATE base SET n = 70 WHERE id = 1");
  ExpectSoon("SELECT n FROM base WHERE id = 1");
  std::this_thread::sleep_for(3s);
  source_->Execute("UPDATE base SET n = 71 WHERE id = 1");
  ExpectSoon("SELECT n FROM base WHERE id = 1");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM base WHERE id BETWEEN 21 AND 25"), "5");
  reader.Execute("COMMIT");
  Step();
}

TEST_F(Inheritance, VerifyComparesEachTablesOwnRows) {
  Step();
  source_->Execute("ALTER TABLE right_heir NO INHERIT base; UPDATE base SET n = 1");
  Step();
  const auto compare = [&] {
    return capture::Verify({.source_dsn = options_.source_dsn,
                            .store_dsn = options_.store_dsn,
                            .journal = std::stoi(store_->Value("SELECT id FROM tidemark.journal")),
                            .deadline = base::Deadline::After(60s)});
  };
  auto verification = compare();
  ASSERT_EQ(verification.tables.size(), 4U);
  EXPECT_TRUE(verification.Equal());
  for (const auto& table : verification.tables) EXPECT_EQ(table.source_count, 5) << table.name.name;
  store_->Execute("UPDATE tidemark_current.d" +
                  store_->Value("SELECT id FROM tidemark.dataset WHERE table_name = 'left_heir'") +
                  " SET n = -1 WHERE id = 11");
  verification = compare();
  for (const auto& table : verification.tables) {
    EXPECT_EQ(table.equal, table.name.name != "left_heir") << table.name.name;
  }
}

TEST_F(Inheritance, HistoryThatAnHeirHasNoMoreIsRefusedAtItsParentToo) {
  Step();
  const auto before = CatchUp();
  source_->Execute("UPDATE base SET n = 1");
  const auto after = CatchUp();
  store_->Execute("UPDATE tidemark.dataset SET tx_retained = (SELECT max(tx) FROM tidemark.tx) "
                  "WHERE table_name = 'leaf'");
  for (const char* table : {"base", "left_heir", "leaf"}) {
    try {
      AsOf(before, "count(*)", table);
      ADD_FAILURE() << table;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kSnapshotTooOld) << error.Full();
      EXPECT_THAT(error.message(), HasSubstr("\"leaf\""));
    }
  }
  EXPECT_EQ(AsOf(before, "count(*)", "right_heir"), "5\n");
  EXPECT_EQ(AsOf(after, "count(*)", "base"), "20\n");
}

TEST_F(Inheritance, PlansHoldTheHeirsOfTheInstantOnly) {
  Step();
  const auto before = CatchUp();
  source_->Execute("ALTER TABLE right_heir NO INHERIT base");
  Step();
  const auto right = "d" + store_->Value("SELECT id FROM tidemark.dataset WHERE table_name = "
                                         "'right_heir'") + "_";
  const auto plan = [&](const std::string& lsn) {
    return Rows(*store_, "EXPLAIN SELECT count(*) FROM tidemark.as_of_position(NULL::base, '" + lsn +
                             "')");
  };
  EXPECT_THAT(plan(before), HasSubstr("Seq Scan on " + right.substr(0, right.size() - 1)));
  EXPECT_THAT(plan(CatchUp()), Not(HasSubstr("on " + right.substr(0, right.size() - 1) + " ")));
  EXPECT_THAT(plan(before), Not(HasSubstr("Function Scan")));
  // Without heirs there is nothing of all this.
  EXPECT_EQ(store_->Value("SELECT count(*) FROM pg_proc WHERE pronamespace = 'tidemark'::regnamespace "
                          "AND proname LIKE 'only%' AND prorettype = 'leaf'::regtype"),
            "0");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM pg_proc WHERE pronamespace = 'tidemark'::regnamespace "
                          "AND proname LIKE 'only%' AND prorettype = 'base'::regtype"),
            "7");
}

TEST_F(Inheritance, ReadersReadParentsAtEveryInstant) {
  Step();
  const auto before = CatchUp();
  store_->Execute("SET ROLE tidemark_reader");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM base"), "20");
  EXPECT_EQ(AsOf(before, "count(*)", "base"), "20\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.only_rows(NULL::base)"), "5");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.only_as_of(NULL::base, (SELECT "
                          "max(system_time) FROM tidemark.basis))"),
            "5");
  store_->Execute("RESET ROLE");
}

}  // namespace
}  // namespace tidemark::tests
