// Columns that change in a family of tables: ALTER TABLE of a parent reaches its heirs in one
// transaction of the source, and no reader of the mirror sees a parent without the rows of its
// heirs.
#include <atomic>

#include "tests/capture/inheritance_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

/// Reads `sql` over and over and keeps what else than `wanted` it saw.
class Reader {
 public:
  Reader(std::string database, std::string sql, std::string wanted)
      : thread_([this, database, sql, wanted](std::stop_token stop) {
          auto store = Cluster::Shared().Connect(database);
          while (!stop.stop_requested()) {
            try {
              const auto seen = store.Value(sql);
              if (seen != wanted) other_ += seen + " ";
            } catch (const base::Error& error) {
              if (error.state().str() != "40P01") other_ += error.Full() + " ";
            }
            ++reads_;
          }
        }) {}
  std::string Stop() {
    thread_.request_stop();
    thread_.join();
    EXPECT_GT(reads_, 0);
    return other_;
  }

 private:
  std::string other_;
  std::atomic<int> reads_ = 0;
  std::jthread thread_;
};

class InheritedColumns : public Inheritance {
 protected:
  std::string Columns(const std::string& table) {
    return "SELECT string_agg(attname, ',' ORDER BY attname) FROM pg_attribute WHERE attrelid = "
           "to_regclass('public." + table + "') AND attnum > 0 AND NOT attisdropped";
  }
  void ExpectShapes() {
    for (const auto& table : tables_) ExpectSoon(Columns(table));
  }
};

TEST_F(InheritedColumns, AreFollowedByAllThoughNoRowChanges) {
  Step();
  const auto before = CatchUp();
  Reader reader(store_->Value("SELECT current_database()"), "SELECT count(*) FROM public.base", "20");
  source_->Execute("ALTER TABLE base ADD z int DEFAULT 3, ADD y text");
  ExpectShapes();
  ExpectSoon("SELECT id, n, s, y, z FROM base ORDER BY id");
  Step();
  EXPECT_EQ(AsOf(before, "count(*), count(z)", "base"), "20|0\n");
  source_->Execute("ALTER TABLE base RENAME n TO m");
  columns_ = "id, m, s";
  ExpectShapes();
  Step();
  source_->Execute("ALTER TABLE base DROP y");
  ExpectShapes();
  Step();
  EXPECT_EQ(reader.Stop(), "");
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(InheritedColumns, AreFollowedByAllWhicheverIsWrittenFirst) {
  Step();
  const auto before = CatchUp();
  Reader reader(store_->Value("SELECT current_database()"), "SELECT count(*) FROM public.base", "20");
  source_->Execute("ALTER TABLE base ADD z int DEFAULT 3; UPDATE ONLY base SET z = 4 WHERE id = 1");
  ExpectSoon("SELECT id, z FROM base ORDER BY id");
  Step();
  source_->Execute("ALTER TABLE base RENAME n TO m; UPDATE leaf SET m = 4 WHERE id = 31");
  columns_ = "id, m, s";
  Step();
  source_->Execute("BEGIN; UPDATE leaf SET m = 5 WHERE id = 31; ALTER TABLE base RENAME m TO n; "
                   "UPDATE right_heir SET n = 6 WHERE id = 21; ALTER TABLE base ADD w int; "
                   "UPDATE base SET w = id; COMMIT");
  columns_ = "id, n, s";
  Step();
  ExpectSoon("SELECT id, w, z FROM base ORDER BY id");
  source_->Execute("ALTER TABLE base DROP z; DELETE FROM right_heir WHERE id = 25; "
                   "INSERT INTO right_heir VALUES ('r', 1, 25, 25, 25)");
  Step();
  ExpectShapes();
  EXPECT_EQ(AsOf(before, "count(*), count(n), sum(n)", "base"), "20|20|360\n");
  EXPECT_EQ(Syncs(), "0");
  // One that goes and one that comes are of the same transaction for whoever reads both.
  EXPECT_EQ(reader.Stop(), "");
}

TEST_F(InheritedColumns, OfAnHeirAloneAreItsOwnMatter) {
  Step();
  source_->Execute("ALTER TABLE left_heir RENAME extra TO more; ALTER TABLE left_heir ADD big bigint; "
                   "UPDATE left_heir SET big = 1; ALTER TABLE right_heir DROP own");
  ExpectShapes();
  Step();
  source_->Execute("INSERT INTO leaf (id, n, s, more, big) VALUES (39, 39, 'l', 'm', 2)");
  ExpectSoon("SELECT id, more, big FROM left_heir ORDER BY id");
  Step();
  EXPECT_EQ(Syncs(), "0");
}

TEST_F(InheritedColumns, AnotherTypeIsFollowedByAllTogether) {
  Step();
  Reader reader(store_->Value("SELECT current_database()"), "SELECT count(*) FROM public.base", "20");
  source_->Execute("ALTER TABLE base ALTER n TYPE bigint USING n + 1");
  Step();
  source_->Execute("UPDATE base SET n = 10000000000 WHERE id % 10 = 1");
  Step();
  EXPECT_EQ(reader.Stop(), "");
  for (const char* table : {"base", "left_heir", "right_heir", "leaf"}) {
    EXPECT_EQ(store_->Value("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid "
                            "= 'public." + std::string(table) + "'::regclass AND attname = 'n'"),
              "bigint");
  }
  EXPECT_EQ(LinksOpen(), "leaf|left_heir\nleft_heir|base\nright_heir|base\n");
}

TEST_F(InheritedColumns, OfAFormerHeirAreReadByTheNamesOfThen) {
  Step();
  source_->Execute("ALTER TABLE right_heir NO INHERIT base");
  Step();
  source_->Execute("ALTER TABLE right_heir RENAME n TO was; ALTER TABLE right_heir ADD n text; "
                   "ALTER TABLE right_heir DROP s; UPDATE right_heir SET n = 'other'");
  tables_ = {"base", "left_heir", "leaf"};
  ExpectSoon(Columns("right_heir"));
  ExpectSoon("SELECT id, n, was FROM right_heir ORDER BY id");
  // What base showed while right_heir was its heir is checked by each step; right_heir alone has
  // the shape of today.
  Forget("right_heir");
  Step();
  source_->Execute("ALTER TABLE base RENAME n TO m; ALTER TABLE base ALTER s TYPE varchar(40)");
  columns_ = "id, m, s";
  Step();
}

TEST_F(InheritedColumns, AParentLacksAnHeirWhoseColumnsAreNotAllSent) {
  if (source_->server_version() < 150000) GTEST_SKIP() << "there are no column lists";
  Step();
  source_->Execute("DROP PUBLICATION tidemark; CREATE PUBLICATION tidemark FOR TABLE ONLY base, "
                   "ONLY left_heir, ONLY leaf, ONLY right_heir (id, own)");
  AwaitProblem("Publish all the columns that it inherits");
  EXPECT_THAT(Problems(), HasSubstr("right_heir"));
  ExpectSoon("SELECT id, own FROM right_heir ORDER BY id");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM base"), "15");
  source_->Execute("ALTER PUBLICATION tidemark SET TABLE ONLY base, ONLY left_heir, ONLY leaf, "
                   "ONLY right_heir");
  ExpectSoon("SELECT id, n, s FROM base ORDER BY id");
  AwaitProblem("inherit", false);
}

TEST_F(InheritedColumns, AnHeirMayHaveNullsThatItsParentRefuses) {
  source_->Execute("ALTER TABLE base ALTER n SET NOT NULL");
  const auto refused = [](const std::string& table) {
    return "SELECT attnotnull FROM pg_attribute WHERE attname = 'n' AND attrelid = 'public." + table +
           "'::regclass";
  };
  for (const auto& table : tables_) ExpectSoon(refused(table));
  if (source_->server_version() >= 180000) {
    source_->Execute("ALTER TABLE base ALTER n DROP NOT NULL; UPDATE leaf SET n = NULL WHERE id = 31");
  } else {
    source_->Execute("ALTER TABLE leaf ALTER n DROP NOT NULL; UPDATE leaf SET n = NULL WHERE id = 31");
  }
  Step();
  EXPECT_EQ(store_->Value(refused("leaf")), "f");
  source_->Execute("ALTER TABLE base ADD z int; UPDATE base SET z = 1; "
                   "INSERT INTO leaf VALUES (37, NULL, 'l', 'e', 1)");
  Step();
  EXPECT_EQ(LinksOpen(), "leaf|left_heir\nleft_heir|base\nright_heir|base\n");
}

}  // namespace
}  // namespace tidemark::tests
