#include "source/postgres/preflight.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/postgres/publication.h"
#include "tests/cluster.h"

namespace tidemark::source {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class PreflightTest : public testing::Test {
 protected:
  PreflightTest() {
    auto& cluster = tests::Cluster::Shared();
    static int number = 0;
    database_ = fmt::format("preflight_{}", ++number);
    cluster.CreateDatabase(database_);
    cluster.CreateDatabase(database_ + "_store");
    source_ = Open("postgres");
    store_ = Open("postgres", database_ + "_store");
    options_.store = &*store_;
  }

  pg::Connection Open(const std::string& user, std::string database = "") const {
    auto& cluster = tests::Cluster::Shared();
    return pg::Connection::Open(
        {.dsn = fmt::format("host={} port={} dbname={} user={}", cluster.host(), cluster.port(),
                            database.empty() ? database_ : database, user),
         .settings = {{"search_path", ""}}},
        base::Deadline::After(std::chrono::seconds(10)));
  }

  void Run(const std::string& sql) { source_->Execute(sql); }
  PreflightReport Report() { return Preflight(*source_, options_); }

  static std::vector<std::string> Tables(const PreflightReport& report) {
    std::vector<std::string> names;
    for (const auto& table : report.tables) names.push_back(table.relation.name.Display());
    return names;
  }
  static std::vector<std::string> LeftOut(const PreflightReport& report) {
    std::vector<std::string> names;
    for (const auto& p : report.problems) {
      if (p.severity == Severity::kRefusesTable) names.push_back(p.table);
    }
    return names;
  }
  static std::string Said(const PreflightReport& report, const std::string& table) {
    std::string text;
    for (const auto& p : report.problems) {
      if (p.table == table) text += p.what + "\n";
    }
    return text;
  }

  std::string database_;
  std::optional<pg::Connection> source_, store_;
  PreflightOptions options_;
};

TEST_F(PreflightTest, FitTablesAreListedAndNothingElseIsSaid) {
  Run("CREATE TABLE public.a (id int PRIMARY KEY); CREATE TABLE public.b (id int PRIMARY KEY)");
  const auto report = Report();
  EXPECT_THAT(Tables(report), ElementsAre("public.a", "public.b"));
  EXPECT_THAT(report.problems, IsEmpty()) << FormatProblems(report.problems);
  EXPECT_FALSE(report.Refused());
  EXPECT_FALSE(report.publication.exists);
  EXPECT_EQ(report.server.database, database_);
  EXPECT_EQ(report.server.encoding, "UTF8");
  EXPECT_GT(report.server.system_identifier, 0U);
  EXPECT_EQ(report.server.timeline, 1U);
}

TEST_F(PreflightTest, ReplicationConnectionGivesTheSameIdentity) {
  const auto by_sql = Report().server;
  auto replication =
      pg::Connection::Open({.dsn = tests::Cluster::Shared().Dsn(database_), .replication = true},
                           base::Deadline::After(std::chrono::seconds(10)));
  options_.replication = &replication;
  const auto by_protocol = Report().server;
  EXPECT_EQ(by_sql.system_identifier, by_protocol.system_identifier);
  EXPECT_EQ(by_sql.timeline, by_protocol.timeline);
}

TEST_F(PreflightTest, TablesWithoutIdentityAreNeverPublishedUnasked) {
  Run("CREATE TABLE public.none (a int);"
      "CREATE TABLE public.nothing (id int PRIMARY KEY);"
      "ALTER TABLE public.nothing REPLICA IDENTITY NOTHING;"
      "CREATE TABLE public.late (id int PRIMARY KEY DEFERRABLE);"
      "CREATE TABLE public.lost (id int NOT NULL);"
      "CREATE UNIQUE INDEX lost_id ON public.lost (id);"
      "ALTER TABLE public.lost REPLICA IDENTITY USING INDEX lost_id; DROP INDEX public.lost_id;"
      "CREATE TABLE public.made (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY);"
      "CREATE TABLE public.nullable (id int UNIQUE);"
      "CREATE TABLE public.fit (id int PRIMARY KEY)");
  const auto report = Report();
  EXPECT_THAT(Tables(report), ElementsAre("public.fit"));
  EXPECT_THAT(LeftOut(report),
              UnorderedElementsAre("public.none", "public.nothing", "public.late", "public.lost",
                                   "public.made", "public.nullable"));
  EXPECT_THAT(Said(report, "public.late"), HasSubstr("deferrable"));
  EXPECT_THAT(Said(report, "public.lost"), HasSubstr("index was dropped"));
  EXPECT_THAT(Said(report, "public.made"), HasSubstr("generated"));
}

TEST_F(PreflightTest, OwnPublicationMirrorsKeylessTablesInsertOnly) {
  Run("CREATE TABLE public.none (a int); CREATE TABLE public.fit (id int PRIMARY KEY);"
      "CREATE TABLE public.whole (a int); ALTER TABLE public.whole REPLICA IDENTITY FULL;"
      "CREATE TABLE public.made (a int, id int GENERATED ALWAYS AS (a + 1) STORED PRIMARY KEY);"
      "CREATE PUBLICATION tidemark FOR ALL TABLES");
  const auto report = Report();
  EXPECT_THAT(Tables(report), ElementsAre("public.fit", "public.none", "public.whole"));
  EXPECT_FALSE(report.tables[0].insert_only);
  EXPECT_TRUE(report.tables[1].insert_only);
  EXPECT_FALSE(report.tables[2].insert_only);
  EXPECT_THAT(Said(report, "public.none"), HasSubstr("only inserts"));
  EXPECT_THAT(Said(report, "public.whole"), HasSubstr("multiset"));
  EXPECT_THAT(LeftOut(report), ElementsAre("public.made"));
}

TEST_F(PreflightTest, ColumnListAndRowFilterAreReported) {
  Run("CREATE TABLE public.t (id int PRIMARY KEY, a text, b text, c text GENERATED ALWAYS AS (a) "
      "STORED); CREATE TABLE public.u (id int PRIMARY KEY, a int);"
      "CREATE TABLE public.v (id int PRIMARY KEY, a int);"
      "CREATE PUBLICATION tidemark FOR TABLE public.t (id, a) WHERE (id > 10), public.u,"
      " public.v (a) WITH (publish = 'insert, update')");
  const auto report = Report();
  ASSERT_THAT(Tables(report), ElementsAre("public.t", "public.u", "public.v"));
  EXPECT_THAT(report.tables[0].columns, ElementsAre("id", "a"));
  EXPECT_EQ(report.tables[0].row_filter, "(id > 10)");
  EXPECT_THAT(report.tables[1].columns, ElementsAre("id", "a"));
  EXPECT_FALSE(report.tables[1].row_filter.has_value());
  EXPECT_TRUE(report.tables[2].insert_only);
  EXPECT_THAT(Said(report, "public.t"), HasSubstr("generated columns are not mirrored: \"c\""));
  EXPECT_THAT(Said(report, ""), HasSubstr("does not publish DELETE"));
  EXPECT_THAT(Said(report, ""), HasSubstr("does not publish TRUNCATE"));
}

TEST_F(PreflightTest, HeirsThatAreNotMirroredAreNamedAtTheirParents) {
  Run("CREATE TABLE public.t (id int PRIMARY KEY);"
      "CREATE TABLE public.heir (PRIMARY KEY (id)) INHERITS (public.t);"
      "CREATE TABLE public.left_out () INHERITS (public.heir);"
      "CREATE TABLE public.whole (id int PRIMARY KEY);"
      "CREATE TABLE public.its_heir (PRIMARY KEY (id)) INHERITS (public.whole);"
      "CREATE TABLE public.p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (9);"
      "CREATE PUBLICATION tidemark FOR TABLE ONLY public.t, ONLY public.heir, public.whole, public.p");
  const auto report = Report();
  EXPECT_THAT(Tables(report), testing::Contains("public.t"));
  EXPECT_THAT(Said(report, "public.t"), HasSubstr("not mirrored: public.left_out"));
  EXPECT_THAT(Said(report, "public.heir"), HasSubstr("not mirrored: public.left_out"));
  EXPECT_THAT(Said(report, "public.whole"), testing::Not(HasSubstr("inherit")));
  EXPECT_THAT(Said(report, "public.p"), testing::Not(HasSubstr("inherit")));
}

TEST_F(PreflightTest, MissingPublicationThatMayNotBeMadeRefusesAll) {
  options_.may_create_publication = false;
  EXPECT_TRUE(Report().Refused());
}

TEST_F(PreflightTest, UnloggedForeignAndOtherRelationsAreNamed) {
  Run("CREATE UNLOGGED TABLE public.u (id int PRIMARY KEY);"
      "CREATE EXTENSION file_fdw SCHEMA public; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw;"
      "CREATE FOREIGN TABLE public.f (a int) SERVER f OPTIONS (filename '/dev/null');"
      "CREATE VIEW public.v AS SELECT 1; CREATE SEQUENCE public.s;"
      "CREATE TEMPORARY TABLE t (id int PRIMARY KEY)");
  const auto report = Report();
  EXPECT_THAT(Tables(report), IsEmpty());
  EXPECT_THAT(LeftOut(report), UnorderedElementsAre("public.u", "public.f"));
  EXPECT_THAT(Said(report, ""), HasSubstr("views are not mirrored: public.v"));
  EXPECT_THAT(Said(report, ""), HasSubstr("sequences are not mirrored: public.s"));
  EXPECT_THAT(Said(report, ""), HasSubstr("temporary relations"));
}

TEST_F(PreflightTest, TypesThatMeanNothingElsewhereAreRefusedByName) {
  Run("CREATE TYPE public.pair AS (a int, b regclass);"
      "CREATE DOMAIN public.role AS regrole;"
      "CREATE TABLE public.plain (id int PRIMARY KEY, o oid, r int4range, j jsonb[]);"
      "CREATE TABLE public.direct (id int PRIMARY KEY, c regproc);"
      "CREATE TABLE public.listed (id int PRIMARY KEY, c regtype[]);"
      "CREATE TABLE public.nested (id int PRIMARY KEY, c public.pair[]);"
      "CREATE TABLE public.domained (id int PRIMARY KEY, c public.role);"
      "CREATE TABLE public.rowed (id int PRIMARY KEY, c public.plain)");
  const auto report = Report();
  EXPECT_THAT(Tables(report), ElementsAre("public.plain"));
  EXPECT_THAT(LeftOut(report),
              UnorderedElementsAre("public.direct", "public.listed", "public.nested",
                                   "public.domained", "public.rowed"));
  EXPECT_THAT(Said(report, "public.nested"), HasSubstr("column \"c\": type regclass"));
}

TEST_F(PreflightTest, ExtensionTheStoreLacksRefusesItsTables) {
  Run("CREATE EXTENSION hstore SCHEMA public; CREATE TABLE public.h (id int PRIMARY KEY,"
      " h public.hstore[])");
  EXPECT_THAT(Tables(Report()), ElementsAre("public.h"));
  // Stands for a type of an extension that exists on no store: renamed in the source's catalog.
  Run("UPDATE pg_catalog.pg_extension SET extname = 'hstore_of_old' WHERE extname = 'hstore'");
  const auto report = Report();
  EXPECT_THAT(Tables(report), IsEmpty());
  EXPECT_THAT(Said(report, "public.h"), HasSubstr("extension \"hstore_of_old\""));
}

TEST_F(PreflightTest, NamesThatCollideWithTidemarkAreRefused) {
  Run("CREATE SCHEMA tidemark; CREATE SCHEMA tidemark_current; CREATE SCHEMA public_history;"
      "CREATE SCHEMA lone_history; CREATE TABLE public.a (id int PRIMARY KEY);"
      "CREATE TABLE tidemark.a (id int PRIMARY KEY);"
      "CREATE TABLE tidemark_current.a (id int PRIMARY KEY);"
      "CREATE TABLE public_history.a (id int PRIMARY KEY);"
      "CREATE TABLE lone_history.a (id int PRIMARY KEY);"
      "CREATE TABLE public.b (id int PRIMARY KEY, _from int)");
  const auto report = Report();
  EXPECT_THAT(Tables(report), UnorderedElementsAre("lone_history.a", "public.a"));
  EXPECT_THAT(LeftOut(report), UnorderedElementsAre("tidemark.a", "tidemark_current.a",
                                                    "public_history.a", "public.b"));
}

TEST_F(PreflightTest, TooManyColumnsAreRefused) {
  std::string columns = "id int PRIMARY KEY";
  for (int i = 0; i < 1598; ++i) columns += fmt::format(", c{} bool", i);
  Run("CREATE TABLE public.wide (" + columns + ")");
  const auto report = Report();
  EXPECT_THAT(Tables(report), IsEmpty());
  EXPECT_THAT(Said(report, "public.wide"), HasSubstr("1599 columns"));
}

TEST_F(PreflightTest, PartitionsAreJudgedWithTheirRoot) {
  Run("CREATE TABLE public.p (id int PRIMARY KEY, a int) PARTITION BY RANGE (id);"
      "CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (10);"
      "CREATE TABLE public.q (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE public.q1 PARTITION OF public.q FOR VALUES FROM (0) TO (10);"
      "ALTER TABLE public.q1 REPLICA IDENTITY NOTHING;"
      "CREATE TABLE public.r (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE UNLOGGED TABLE public.r1 PARTITION OF public.r FOR VALUES FROM (0) TO (10);"
      "CREATE TABLE public.s (a int) PARTITION BY RANGE (a);"
      "CREATE TABLE public.s1 PARTITION OF public.s FOR VALUES FROM (0) TO (10);"
      "ALTER TABLE public.s REPLICA IDENTITY FULL");
  const auto report = Report();
  EXPECT_THAT(Tables(report), ElementsAre("public.p"));
  EXPECT_THAT(LeftOut(report), UnorderedElementsAre("public.q", "public.r", "public.s"));
}

TEST_F(PreflightTest, WeakRoleIsToldWhatItLacks) {
  Run("DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN;"
      "CREATE SCHEMA hidden; CREATE TABLE hidden.t (id int PRIMARY KEY);"
      "GRANT USAGE ON SCHEMA public TO weak;"
      "CREATE TABLE public.unread (id int PRIMARY KEY);"
      "CREATE TABLE public.filtered (id int PRIMARY KEY); GRANT SELECT ON public.filtered TO weak;"
      "ALTER TABLE public.filtered ENABLE ROW LEVEL SECURITY;"
      "CREATE TABLE public.part (id int PRIMARY KEY, secret int);"
      "GRANT SELECT (id) ON public.part TO weak;"
      "CREATE TABLE public.open (id int PRIMARY KEY); GRANT SELECT ON public.open TO weak;");
  auto weak = Open("weak");
  auto report = Preflight(weak, options_);
  EXPECT_TRUE(report.Refused());
  EXPECT_THAT(Said(report, ""), HasSubstr("may not use replication"));
  EXPECT_THAT(Said(report, ""), HasSubstr("may not create one"));
  EXPECT_THAT(Said(report, "public.open"), HasSubstr("does not own it"));

  Run("ALTER ROLE weak REPLICATION; CREATE PUBLICATION tidemark FOR TABLE hidden.t, public.unread,"
      " public.filtered, public.part (id), public.open");
  report = Preflight(weak, options_);
  EXPECT_FALSE(report.Refused()) << FormatProblems(report.problems);
  EXPECT_THAT(Tables(report), ElementsAre("public.open", "public.part"));
  EXPECT_THAT(Said(report, "hidden.t"), HasSubstr("USAGE"));
  EXPECT_THAT(Said(report, "public.unread"), HasSubstr("SELECT"));
  EXPECT_THAT(Said(report, "public.filtered"), HasSubstr("row-level security"));
}

TEST_F(PreflightTest, SourceWithoutLogicalDecodingIsRefused) {
  const tests::Cluster cluster({"wal_level = replica", "max_replication_slots = 1"});
  auto source = cluster.Connect();
  const auto report = Preflight(source, {});
  EXPECT_TRUE(report.Refused());
  EXPECT_THAT(FormatProblems(report.problems), HasSubstr("ALTER SYSTEM SET wal_level = logical"));
}

// Nothing is copied for hours that could not be published then.
TEST_F(PreflightTest, StoreWithoutRoomForTheLocksOfAFirstCopyIsRefused) {
  const tests::Cluster small(
      {"max_connections = 10", "max_locks_per_transaction = 10", "max_prepared_transactions = 0"});
  auto store = small.Connect();
  options_.store = &store;
  for (int i = 1; i <= 12; ++i) {
    Run(fmt::format("CREATE TABLE public.many{} (id int PRIMARY KEY)", i));
  }
  EXPECT_FALSE(Report().Refused()) << FormatProblems(Report().problems);
  Run("CREATE TABLE public.part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); "
      "CREATE TABLE public.part1 PARTITION OF public.part FOR VALUES FROM (0) TO (10)");
  const auto report = Report();
  EXPECT_TRUE(report.Refused());
  EXPECT_THAT(FormatProblems(report.problems), HasSubstr("13 tables needs 112"));
  EXPECT_THAT(FormatProblems(report.problems),
              HasSubstr("ALTER SYSTEM SET max_locks_per_transaction = 22"));
  store.Execute("CREATE SCHEMA tidemark; "
                "CREATE TABLE tidemark.dataset (schema_name text, table_name text, tx_first bigint); "
                "INSERT INTO tidemark.dataset VALUES ('public', 'many1', NULL)");
  EXPECT_TRUE(Report().Refused());
  store.Execute("UPDATE tidemark.dataset SET tx_first = 1");
  EXPECT_FALSE(Report().Refused());
}

TEST_F(PreflightTest, ForeignSlotOfTheSameNameIsRefused) {
  Run("SELECT pg_catalog.pg_create_physical_replication_slot('taken')");
  options_.slot = "taken";
  const auto report = Report();
  Run("SELECT pg_catalog.pg_drop_replication_slot('taken')");
  EXPECT_TRUE(report.Refused());
  EXPECT_THAT(Said(report, ""), HasSubstr("not ours"));
}

TEST_F(PreflightTest, PublicationOfFitTablesIsMadeWhole) {
  Run("CREATE TABLE public.\"Odd \"\"name\" (id int PRIMARY KEY); CREATE TABLE public.none (a int);"
      "CREATE TABLE public.p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
      "CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (10)");
  std::vector<pg::Relation> relations;
  for (auto& table : Report().tables) relations.push_back(table.relation);
  CreatePublication(*source_, "tidemark", relations);
  const auto report = Report();
  EXPECT_TRUE(report.publication.exists);
  EXPECT_TRUE(report.publication.via_root);
  EXPECT_THAT(Tables(report), ElementsAre("public.\"Odd \"\"name\"", "public.p"));
  Run("INSERT INTO public.none VALUES (1); UPDATE public.none SET a = 2");
}

TEST(FormatProblems, ColumnsAreAligned) {
  const std::vector<Problem> problems = {
      {Severity::kRefusesTable, "public.é", "x", "y", base::kInternalError},
      {Severity::kNote, "", "longer", "", base::kInternalError}};
  EXPECT_EQ(FormatProblems(problems),
            "severity  table     problem  fix\n"
            "left out  public.é  x        y\n"
            "note                longer\n");
}

}  // namespace
}  // namespace tidemark::source
