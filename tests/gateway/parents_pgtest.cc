// Tables that others inherit from, through the gateway: ONLY and COPY leave out the rows of heirs,
// at latest, with clauses and in pinned sessions, as the source answers the same text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

const std::vector<std::string> kStatements = {
    "SELECT id, n FROM p ORDER BY id",
    "SELECT id, n FROM ONLY p ORDER BY id",
    "SELECT id, m FROM ONLY (p) AS x (id, m) ORDER BY id",
    "SELECT count(*), sum(n) FROM p *",
    "SELECT public.p.id FROM ONLY public.p ORDER BY public.p.id",
    "SELECT a.id, b.id FROM ONLY p a JOIN c b ON a.n = b.n ORDER BY 1, 2",
    "SELECT a.id, b.id FROM p a JOIN ONLY c b ON a.n = b.n ORDER BY 1, 2",
    "SELECT count(*) FROM ONLY g",
    "WITH own AS (SELECT * FROM ONLY p) SELECT count(*) FROM own, ONLY c",
    "TABLE ONLY p",
    "COPY p TO STDOUT",
    "COPY public.p (n, id) TO STDOUT",
    "COPY c (id, n, extra) TO STDOUT (FORMAT csv)",
    "COPY (SELECT id FROM p ORDER BY id) TO STDOUT",
};

class Parents : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    mirror_ = std::make_unique<Mirror>();
    mirror_->SetUp();
    mirror_->source_->Execute(
        "CREATE TABLE p (id int PRIMARY KEY, n int); "
        "CREATE TABLE c (extra text, PRIMARY KEY (id)) INHERITS (p); "
        "CREATE TABLE g (PRIMARY KEY (id)) INHERITS (c); "
        "INSERT INTO p SELECT i, i % 3 FROM generate_series(1, 4) i; "
        "INSERT INTO c SELECT i, i % 3, 'c' FROM generate_series(11, 15) i; "
        "INSERT INTO g SELECT i, i % 3, 'g' FROM generate_series(21, 26) i");
    mirror_->Start();
    mirror_->CatchUp();
    gateway_ = std::make_unique<GatewayThread>();
    Record();
    mirror_->source_->Execute("ALTER TABLE g NO INHERIT c; UPDATE p SET n = n + 1; "
                              "INSERT INTO p VALUES (5, 1)");
    const auto deadline = base::Deadline::After(30s);
    while (mirror_->store_->Value("SELECT count(*) FROM p") != "10" && !deadline.passed()) {
      std::this_thread::sleep_for(50ms);
    }
    mirror_->CatchUp();
    Record();
  }
  static void TearDownTestSuite() {
    gateway_.reset();
    mirror_->TearDown();
    mirror_.reset();
    steps_.clear();
  }

 protected:
  struct Step {
    std::string instant, position;
    std::map<std::string, std::string> answers;
  };
  static SqlClient Client() { return SqlClient(gateway_->Dsn(mirror_->database())); }
  static SqlClient Source() {
    return SqlClient(
        Cluster::SharedSource().Dsn(mirror_->source_->Value("SELECT current_database()")));
  }
  /// The lines in order: a table and its copy may hold their rows in another one.
  static std::string Sorted(const std::string& rows) {
    std::istringstream in(rows);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return fmt::format("{}", fmt::join(lines, "\n"));
  }
  static std::string Ask(SqlClient& client, const std::string& sql) {
    const Answer answer = client.Simple(sql);
    EXPECT_EQ(answer.Outcome(), "ok") << sql;
    return Sorted(answer.rows);
  }
  static void Record() {
    Step step{mirror_->Newest(), mirror_->store_->Value("SELECT received_lsn FROM "
                                                        "tidemark.resume"), {}};
    auto source = Source();
    for (const auto& sql : kStatements) step.answers[sql] = Ask(source, sql);
    steps_.push_back(std::move(step));
  }
  static const Step& Before() { return steps_.at(0); }
  static const Step& Now() { return steps_.at(1); }

  static std::unique_ptr<Mirror> mirror_;
  static std::unique_ptr<GatewayThread> gateway_;
  static std::vector<Step> steps_;
};

std::unique_ptr<Mirror> Parents::mirror_;
std::unique_ptr<GatewayThread> Parents::gateway_;
std::vector<Parents::Step> Parents::steps_;

TEST_F(Parents, TheLatestIsAnsweredAsTheSourceAnswersIt) {
  auto client = Client();
  for (const auto& [sql, answer] : Now().answers) {
    EXPECT_EQ(Ask(client, sql), answer) << sql;
    if (sql.starts_with("COPY")) continue;
    EXPECT_EQ(Sorted(client.Extended(sql).rows), answer) << sql;
  }
}

TEST_F(Parents, APinnedSessionReadsWhatTheSourceAnsweredThen) {
  auto client = Client();
  for (const auto* step : {&Before(), &Now(), &Before()}) {
    ASSERT_EQ(client.Simple("SET tidemark.as_of = '" + step->instant + "'").Outcome(), "ok");
    for (const auto& [sql, answer] : step->answers) {
      EXPECT_EQ(Ask(client, sql), answer) << sql << " at " << step->instant;
    }
  }
}

TEST_F(Parents, ClausesReadWithHeirsAndWithout) {
  auto client = Client();
  for (const auto* step : {&Before(), &Now()}) {
    for (const auto& clause : {"FOR SYSTEM_TIME AS OF '" + step->instant + "'",
                               "FOR SYSTEM_TIME AS OF timestamptz '" + step->instant +
                                   "' + make_interval(secs => 0)",
                               "FOR SOURCE_POSITION AS OF '" + step->position + "'"}) {
      EXPECT_EQ(Ask(client, "SELECT id, n FROM p " + clause + " AS p ORDER BY id"),
                step->answers.at("SELECT id, n FROM p ORDER BY id"))
          << clause;
      EXPECT_EQ(Ask(client, "SELECT id, n FROM ONLY p " + clause + " AS p ORDER BY id"),
                step->answers.at("SELECT id, n FROM ONLY p ORDER BY id"))
          << clause;
      EXPECT_EQ(Ask(client, "SELECT count(*) FROM ONLY g " + clause + " AS g"),
                step->answers.at("SELECT count(*) FROM ONLY g"))
          << clause;
    }
  }
}

TEST_F(Parents, PreparedStatementsAndTokensObey) {
  auto client = Client();
  ASSERT_EQ(client.Simple("SET tidemark.as_of = ''").Outcome(), "ok");
  ASSERT_EQ(client.Simple("PREPARE own AS SELECT count(*) FROM ONLY p; "
                          "PREPARE with_heirs AS SELECT count(*) FROM p")
                .Outcome(),
            "ok");
  EXPECT_EQ(Ask(client, "EXECUTE own"), "5");
  EXPECT_EQ(Ask(client, "EXECUTE with_heirs"), "10");
  ASSERT_EQ(client.Simple("SET tidemark.as_of = '" + Before().instant + "'").Outcome(), "ok");
  EXPECT_EQ(Ask(client, "EXECUTE own"), "4");
  EXPECT_EQ(Ask(client, "EXECUTE with_heirs"), "15");
  ASSERT_EQ(client.Simple("RESET tidemark.as_of").Outcome(), "ok");
  const auto token = Ask(client, "SELECT tidemark.snapshot_token('" + Before().instant + "')");
  ASSERT_EQ(client.Simple("SET tidemark.snapshot = '" + token + "'").Outcome(), "ok");
  EXPECT_EQ(Ask(client, "SELECT count(*) FROM p"), "15");
  EXPECT_EQ(Ask(client, "SELECT count(*) FROM ONLY p"), "4");
}

TEST_F(Parents, OnlyRowsIsNotForPinnedSessions) {
  auto client = Client();
  EXPECT_EQ(Ask(client, "SELECT count(*) FROM tidemark.only_rows(NULL::p)"), "5");
  ASSERT_EQ(client.Simple("SET tidemark.as_of = '" + Before().instant + "'").Outcome(), "ok");
  EXPECT_NE(client.Simple("SELECT count(*) FROM tidemark.only_rows(NULL::p)").Outcome(), "ok");
  EXPECT_EQ(Ask(client, "SELECT count(*) FROM tidemark.only_as_of(NULL::p, "
                        "'" + Before().instant + "')"),
            "4");
}

}  // namespace
}  // namespace tidemark::tests
