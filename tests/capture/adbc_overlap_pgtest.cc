// The declared overlap of a cursor over ADBC, from the configuration to the store: what was
// committed late is caught within it, and nothing is there twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cluster.h"
#include "tests/source/specimen.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;

class AdbcOverlap : public testing::Test {
 protected:
  AdbcOverlap()
      : store_dsn_(NewDatabase()),
        store_(pg::Connection::Open({.dsn = store_dsn_},
                                    base::Deadline::After(std::chrono::seconds(30)))) {}

  void Declare(const std::string& driver, const std::string& uri, const std::string& cursor,
               const std::string& overlap) {
    driver_ = driver;
    uri_ = uri;
    std::ofstream(Config()) << fmt::format(
        "store: \"{}\"\nallow_volatile_store: true\nsources:\n  crm: {{adbc: {{driver: \"{}\", "
        "uri: \"{}\"}}}}\ndatasets:\n  crm.events: {{source: crm, relation: events, strategy: "
        "cursor, cursor: {}, key: [id], overlap: \"{}\"}}\n",
        store_dsn_, AdbcDriverPath(driver), uri, cursor, overlap);
  }
  void AtSource(const std::vector<std::string>& statements) {
    RunThroughAdbc(driver_, uri_, statements);
  }
  std::string Capture() {
    std::string output;
    const int code = tests::Run({TIDEMARK_BINARY, "capture", "--config", Config()}, &output);
    EXPECT_EQ(code, 0) << output;
    return output;
  }
  std::string Value(const std::string& sql) { return store_.Value(sql); }
  std::string LastPuts() {
    return Value("SELECT puts FROM tidemark.basis_member ORDER BY basis DESC LIMIT 1");
  }
  void ExpectChainHolds() {
    std::string output;
    EXPECT_EQ(tests::Run({TIDEMARK_BINARY, "verify", "--versions", "--config", Config()}, &output),
              0)
        << output;
  }
  std::string Config() const { return (folder_.path() / "tidemark.yaml").string(); }
  std::string SqliteFile() const { return (folder_.path() / "events.db").string(); }

  TemporaryFolder folder_;
  std::string store_dsn_;
  pg::Connection store_;

 private:
  std::string driver_, uri_;
};

TEST_F(AdbcOverlap, CatchesLateRowsOfSqliteAndDoublesNone) {
  Declare("sqlite", SqliteFile(), "seq", "100");
  // Numbers 950, 960 and 970 were taken by transactions that have not committed yet, 500 by
  // another.
  AtSource(
      {"CREATE TABLE events (id integer PRIMARY KEY, seq integer NOT NULL, what text)",
       "INSERT INTO events WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE "
       "n < 1000) SELECT n, n, 'event ' || n FROM s WHERE n NOT IN (500, 950, 960, 970)"});
  Capture();
  EXPECT_EQ(LastPuts(), "996");
  AtSource(
      {"INSERT INTO events VALUES (950, 950, 'late'), (960, 960, 'late'), (970, 970, 'late'), "
       "(500, 500, 'later than declared')",
       "INSERT INTO events WITH RECURSIVE s(n) AS (SELECT 1001 UNION ALL SELECT n + 1 FROM s "
       "WHERE n < 1010) SELECT n, n, 'event ' || n FROM s"});
  Capture();
  EXPECT_EQ(LastPuts(), "13");
  EXPECT_EQ(Value("SELECT count(*) FROM crm.events WHERE what = 'late'"), "3");
  EXPECT_EQ(Value("SELECT count(*) FROM crm.events WHERE id = 500"), "0");
  EXPECT_EQ(Value("SELECT \"position\" ->> 'cursor' FROM tidemark.resume"), "1010");
  // A row that is read again as it was is no version, one that was corrected is one.
  EXPECT_THAT(Capture(), HasSubstr("unchanged"));
  AtSource({"UPDATE events SET what = 'corrected' WHERE id = 1000"});
  Capture();
  EXPECT_EQ(LastPuts(), "1");
  EXPECT_EQ(Value("SELECT count(*) FROM crm.events"), "1009");
  EXPECT_EQ(Value("SELECT count(*) FROM crm_history.events"), "1010");
  EXPECT_EQ(Value("SELECT count(*) - count(DISTINCT (id, tx_from)) FROM crm_history.events"), "0");
  ExpectChainHolds();
}

TEST_F(AdbcOverlap, MayBeASpanOfTime) {
  const auto source_dsn = NewDatabase();
  Declare("postgresql", source_dsn, "at", "5 minutes");
  AtSource(
      {"CREATE TABLE events (id int PRIMARY KEY, at timestamptz NOT NULL, what text)",
       "INSERT INTO events SELECT i, '2026-01-01 00:00+00'::timestamptz + i * interval '1 second', "
       "'event' FROM generate_series(1, 3600) i WHERE i NOT IN (3000, 3400)"});
  Capture();
  EXPECT_EQ(LastPuts(), "3598");
  AtSource(
      {"INSERT INTO events VALUES (3400, '2026-01-01 00:56:40+00', 'late'), "
       "(3000, '2026-01-01 00:50:00+00', 'later than declared'), "
       "(3601, '2026-01-01 01:00:01+00', 'event')"});
  Capture();
  EXPECT_EQ(LastPuts(), "2");
  EXPECT_EQ(Value("SELECT count(*) FROM crm.events WHERE id IN (3000, 3400, 3601)"), "2");
  EXPECT_THAT(Capture(), HasSubstr("unchanged"));
  EXPECT_EQ(Value("SELECT count(*) FROM crm_history.events"), "3600");
  ExpectChainHolds();
}

}  // namespace
}  // namespace tidemark::tests
