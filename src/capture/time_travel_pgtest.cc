// The time-travel functions and views of a mirror, as anybody with a PostgreSQL client may use
// them without the gateway: forms, edges, errors and plans.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/identifier.h"
#include "tests/mirror_fixture.h"

namespace tidemark::capture {
namespace {

using namespace std::chrono_literals;

class TimeTravel : public tests::MirrorFixture {
 protected:
  // t(id, n) with versions n = 0 (first copy), 1, 2, 3, each in a basis of its own; bases_[i] is
  // the system time from which n = i was to be seen.
  void MakeVersions() {
    source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    Start();
    CatchUp();
    for (int n = 0; n < 4; ++n) {
      if (n > 0) {
        source_->Execute("UPDATE t SET n = " + std::to_string(n));
        CatchUp();
      }
      bases_.push_back(
          store_->Value("SELECT system_time FROM tidemark.basis ORDER BY number DESC LIMIT 1"));
      positions_.push_back(store_->Value("SELECT lsn FROM tidemark.resume"));
    }
  }
  std::string At(const std::string& instant) {
    return Rows(*store_, "SELECT n FROM tidemark.as_of(NULL::t, " + instant + ")");
  }
  std::string Quoted(int basis, const std::string& shift = "") {
    return "timestamptz '" + bases_[static_cast<size_t>(basis)] + "'" + shift;
  }
  std::string StateOf(const std::string& sql) {
    try {
      store_->Execute(sql);
    } catch (const base::Error& error) {
      return error.state().str() + " " + error.message();
    }
    return "no error";
  }
  std::string Plan(const std::string& sql) { return Rows(*store_, "EXPLAIN (COSTS off) " + sql); }

  std::vector<std::string> bases_, positions_;
};

TEST_F(TimeTravel, AnswersEveryInstantFromItsBasisOn) {
  MakeVersions();
  for (int n = 0; n < 4; ++n) {
    const auto want = std::to_string(n) + "\n";
    EXPECT_EQ(At(Quoted(n)), want);
    EXPECT_EQ(At(Quoted(n, " + interval '1 microsecond'")), want);
    if (n > 0) {
      EXPECT_EQ(At(Quoted(n, " - interval '1 microsecond'")), std::to_string(n - 1) + "\n");
    }
    EXPECT_EQ(Rows(*store_, "SELECT n FROM tidemark.as_of_once(NULL::t, " + Quoted(n) + ")"), want);
    EXPECT_EQ(Rows(*store_, "SELECT n FROM tidemark.as_of_position(NULL::t, '" +
                                positions_[static_cast<size_t>(n)] + "')"),
              want);
    EXPECT_EQ(Rows(*store_, "SELECT n FROM tidemark.as_of_tx(NULL::t, " + std::to_string(n + 1) +
                                ")"),
              want);
  }
  EXPECT_EQ(At("clock_timestamp()"), "3\n");
}

TEST_F(TimeTravel, RefusesInstantsThatItCannotAnswer) {
  MakeVersions();
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of(NULL::t, '2001-01-01 00:00+00')"),
              ::testing::HasSubstr("22008 instant 2001-01-01 00:00:00+00 precedes the first"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of(NULL::t, clock_timestamp() + interval '1 h')"),
              ::testing::HasSubstr("is in the future"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of(NULL::t, NULL)"),
              ::testing::HasSubstr("22004 FOR SYSTEM_TIME instant must not be null"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of(NULL::t, 'yesteryear')"),
              ::testing::HasSubstr("22007"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of_position(NULL::t, 'FFFF/0')"),
              ::testing::HasSubstr("55000 \"t\" has been received only up to"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of_position(NULL::t, '0/1')"),
              ::testing::HasSubstr("22008"));
  EXPECT_THAT(StateOf("SELECT * FROM tidemark.as_of_source(NULL::t, 'infinity')"),
              ::testing::HasSubstr("55000"));
  store_->Execute("CREATE TABLE plain (a int)");
  EXPECT_THAT(StateOf("SELECT tidemark.tx_at('plain', now())"),
              ::testing::HasSubstr("42809 relation \"plain\" is not system-versioned"));
}

TEST_F(TimeTravel, RangeFormsFollowTheirDefinition) {
  MakeVersions();
  const auto range = [&](const std::string& form, const std::string& a, const std::string& b) {
    return Rows(*store_, "SELECT n FROM tidemark.versions(NULL::t, 'system', '" + form + "', " + a +
                             ", " + b + ") ORDER BY n");
  };
  EXPECT_EQ(range("from_to", Quoted(1), Quoted(3)), "1\n2\n");
  EXPECT_EQ(range("between", Quoted(1), Quoted(3)), "1\n2\n3\n");
  EXPECT_EQ(range("between", Quoted(3), Quoted(1)), "");
  EXPECT_EQ(range("symmetric", Quoted(3), Quoted(1)), "1\n2\n3\n");
  EXPECT_EQ(range("from_to", Quoted(2), Quoted(2)), "");
  EXPECT_EQ(range("between", Quoted(2), Quoted(2)), "2\n");
  EXPECT_EQ(range("contained", Quoted(1), Quoted(3)), "1\n2\n");
  EXPECT_EQ(range("contained", Quoted(1), Quoted(2)), "1\n");
  EXPECT_EQ(range("contained", Quoted(1), "'infinity'"), "1\n2\n3\n");
  EXPECT_EQ(range("from_to", "'-infinity'", "'infinity'"), "0\n1\n2\n3\n");
  EXPECT_EQ(range("all", "NULL", "NULL"), "0\n1\n2\n3\n");
}

TEST_F(TimeTravel, AVersionInsideOneBasisIsSeenOnlyByAllAndSourceTime) {
  MakeVersions();
  Stop();
  source_->Execute("UPDATE t SET n = 10");
  source_->Execute("UPDATE t SET n = 11");
  Start();
  CatchUp();
  ASSERT_EQ(store_->Value("SELECT count(DISTINCT tidemark.system_from) FROM (SELECT system_from "
                          "FROM public_history.t WHERE n >= 10) tidemark"),
            "1")
      << "both commits were to be published together";
  const auto seen = [&](const std::string& axis, const std::string& form) {
    return Rows(*store_, "SELECT n FROM tidemark.versions(NULL::t, '" + axis + "', '" + form +
                             "', '-infinity', 'infinity') WHERE n >= 10 ORDER BY n");
  };
  EXPECT_EQ(seen("system", "all"), "10\n11\n");
  EXPECT_EQ(seen("system", "between"), "11\n");
  EXPECT_EQ(seen("source", "between"), "10\n11\n");
  EXPECT_EQ(Rows(*store_, "SELECT n FROM public_history.t WHERE n >= 10 ORDER BY n"), "10\n11\n");
}

TEST_F(TimeTravel, RangesHaveTheVersionsWhosePeriodsAreInThem) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                   "INSERT INTO t SELECT i, 0 FROM generate_series(0, 4) i");
  Start();
  CatchUp();
  int n = 0;
  for (const int commits : {1, 20, 3, 1, 9, 2, 14}) {  // of each basis
    Stop();
    for (int i = 0; i < commits; ++i, ++n) {
      source_->Execute(fmt::format("UPDATE t SET n = {} WHERE id = {}", n, n * n % 5));
    }
    Start();
    CatchUp();
  }
  EXPECT_EQ(store_->Value("SELECT tx_span FROM tidemark.journal"),
            store_->Value("SELECT max(s) FROM (SELECT tx_last - lag(tx_last, 1, 0::bigint) OVER (ORDER BY "
                          "system_time) AS s FROM tidemark.basis_journal) x"));
  const auto instants = store_->Execute("SELECT system_time FROM tidemark.basis ORDER BY 1");
  const std::string period = "SELECT n, tx_from FROM public_history.t WHERE system_from < system_to AND ";
  int found = 0;
  for (int a = 0; a < instants.rows(); ++a) {
    for (int b = a + 1; b < instants.rows(); ++b) {
      const auto from = base::QuoteLiteral(instants.str(a, 0)), to = base::QuoteLiteral(instants.str(b, 0));
      const auto range = [&](const std::string& form) {
        return Rows(*store_, fmt::format("SELECT n, tx_from FROM tidemark.versions(NULL::t, 'system', "
                                         "'{}', {}, {}) ORDER BY 2, 1", form, from, to));
      };
      const auto wanted = [&](const std::string& condition) {
        return Rows(*store_, period + condition + " ORDER BY 2, 1");
      };
      EXPECT_EQ(range("from_to"), wanted(fmt::format("system_from < {} AND system_to > {}", to, from)));
      EXPECT_EQ(range("between"), wanted(fmt::format("system_from <= {} AND system_to > {}", to, from)));
      EXPECT_EQ(range("contained"), wanted(fmt::format("system_from >= {} AND system_to <= {}", from, to)));
      found += range("contained").empty() ? 0 : 1;
    }
  }
  EXPECT_GT(found, 5);
  EXPECT_NE(store_->Value("SELECT count(*) FROM public_history.t WHERE system_from = system_to"), "0");
}

TEST_F(TimeTravel, DiffNamesEachRowThatChanged) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, "
                   "0)");
  Start();
  CatchUp();
  const auto a = CatchUp();
  source_->Execute("UPDATE t SET n = 1 WHERE id = 1");
  source_->Execute("UPDATE t SET n = 2 WHERE id = 1");
  source_->Execute("DELETE FROM t WHERE id = 2");
  source_->Execute("INSERT INTO t VALUES (3, 3); ");
  source_->Execute("INSERT INTO t VALUES (4, 4); DELETE FROM t WHERE id = 4");
  const auto b = CatchUp();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM tidemark.diff_position(NULL::t, '" + a + "', '" + b +
                              "') ORDER BY op"),
            "delete|(2,0)|NULL\ninsert|NULL|(3,3)\nupdate|(1,0)|(1,2)\n");
}

TEST_F(TimeTravel, PeriodColumnsGetUnderscoresUntilUnique) {
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, system_from int, _system_from int); "
                   "INSERT INTO t VALUES (1, 2, 3)");
  Start();
  CatchUp();
  EXPECT_EQ(Rows(*store_, "SELECT id, system_from, _system_from, __system_from IS NOT NULL, "
                          "system_to FROM public_history.t"),
            "1|2|3|t|infinity\n");
}

TEST_F(TimeTravel, IsInlinedAndPrunesPartitionsByAConstantInstant) {
  MakeVersions();
  const auto plan =
      Plan("SELECT * FROM tidemark.as_of(NULL::t, " + Quoted(1) + ") WHERE id = 1");
  EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("Function Scan"))) << plan;
  EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("tx_at"))) << plan;
  EXPECT_THAT(plan, ::testing::HasSubstr("_from <= '2'::bigint")) << plan;
  const auto once = Plan("SELECT * FROM tidemark.as_of_once(NULL::t, now() - interval '1 second')");
  EXPECT_THAT(once, ::testing::HasSubstr("InitPlan")) << once;
  EXPECT_THAT(Plan("SELECT * FROM t"), ::testing::Not(::testing::HasSubstr("Filter")));
}

TEST_F(TimeTravel, SealedPartitionsGiveTheSameAnswers) {
  options_.history = {.rows_aimed = 10};
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, n int); "
                   "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i");
  Start();
  CatchUp();
  for (int n = 1; n <= 60; ++n) {
    source_->Execute("UPDATE t SET n = " + std::to_string(n) + " WHERE id % 20 = " +
                     std::to_string(n % 20));
    if (n % 10 == 0) CatchUp();
  }
  const std::string all =
      "SELECT x, (SELECT string_agg(id || ':' || n, ',' ORDER BY id) FROM "
      "tidemark.as_of_tx(NULL::t, "
      "x)) FROM generate_series(1, 61) x ORDER BY x";
  const auto before = Rows(*store_, all);
  {
    // A snapshot from before keeps its answers while partitions are sealed beside it.
    auto older = tests::Cluster::Shared().Connect(store_->Value("SELECT current_database()"));
    pg::Transaction snapshot(older, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    older.Execute("SELECT 1 FROM t LIMIT 1");
    const auto deadline = base::Deadline::After(8s);
    while (!deadline.passed()) {
      if (store_->Value("SELECT count(*) FROM tidemark.history_partition "
                        "WHERE rewritten_by IS NOT NULL OR sealed") != "0") break;
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_EQ(Rows(older, all), before);
  }
  const auto deadline = base::Deadline::After(40s);
  std::string open = "?";
  while (!deadline.passed() && open != "0") {
    open = store_->Value("SELECT count(*) FROM tidemark.history_partition "
                         "WHERE NOT sealed AND tx_to IS NOT NULL");
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(open, "0") << "full partitions were not sealed";
  EXPECT_NE(store_->Value("SELECT count(*) FROM tidemark.history_partition WHERE sealed"), "0");
  EXPECT_EQ(Rows(*store_, all), before);
  EXPECT_EQ(Rows(*store_, "SELECT DISTINCT (SELECT count(*) FROM pg_index i WHERE i.indrelid = "
                          "to_regclass(format('tidemark_history.d%s_p%s', dataset, number))) "
                          "FROM tidemark.history_partition WHERE sealed"),
            "2\n")
      << "a sealed partition has the indexes on its key and on _from";
}

TEST_F(TimeTravel, LooksLikeTheSourceToItsCatalog) {
  source_->Execute(R"(
    CREATE TABLE p (id int PRIMARY KEY, name varchar(20) NOT NULL UNIQUE);
    CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES p, amount numeric(10,2));
    CREATE INDEX t_amount ON t (amount) WHERE amount > 0;
    COMMENT ON TABLE t IS 'rows''s'; COMMENT ON COLUMN t.amount IS 'in euro';
    INSERT INTO p VALUES (1, 'a'); INSERT INTO t VALUES (1, 1, 5))");
  Start();
  CatchUp();
  ExpectSame("SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE "
             "attrelid IN ('t'::regclass, 'p'::regclass) AND attnum > 0 ORDER BY "
             "attrelid::regclass::text, attnum");
  ExpectSame("SELECT conname, contype FROM pg_constraint WHERE conrelid IN ('t'::regclass, "
             "'p'::regclass) ORDER BY 1");
  ExpectSame("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1");
  ExpectSame("SELECT obj_description('t'::regclass), col_description('t'::regclass, 3)");
}

TEST_F(TimeTravel, AReaderCanReadAndNothingElse) {
  MakeVersions();
  const auto role = "r_" + options_.name;
  store_->Execute("CREATE ROLE " + role + " IN ROLE tidemark_reader");
  store_->Execute("SET ROLE " + role);
  EXPECT_EQ(At(Quoted(1)), "1\n");
  EXPECT_EQ(Rows(*store_, "SELECT n FROM t"), "3\n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.t"), "4");
  EXPECT_EQ(At("clock_timestamp()"), "3\n");
  EXPECT_THAT(StateOf("INSERT INTO t VALUES (9, 9)"), ::testing::HasSubstr("42501"));
  EXPECT_THAT(StateOf("SELECT tidemark.receive(1, 'x', 1, '0/1', now())"),
              ::testing::HasSubstr("42501"));
  store_->Execute("RESET ROLE");
}

}  // namespace
}  // namespace tidemark::capture
