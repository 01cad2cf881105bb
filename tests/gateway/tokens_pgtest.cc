// Snapshot tokens: a session reads exactly one basis, and no clause goes past it.
#include <fmt/format.h>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using testing::HasSubstr;

class Tokens : public TimeTravelFixture {
 protected:
  static std::string TokenAt(int n) {
    return mirror().store_->Value("SELECT tidemark.snapshot_token($1)", {InstantOf(n)});
  }
  static SqlClient Holding(const std::string& token) {
    SqlClient client = Client();
    EXPECT_EQ(client.Simple("SET tidemark.snapshot = '" + token + "'").Outcome(), "ok");
    return client;
  }
};

TEST_F(Tokens, ASnapshotTokenPinsItsBasis) {
  SqlClient client = Holding(TokenAt(1));
  EXPECT_EQ(RowsOf(client, "SELECT n FROM t WHERE id = 1"), "1\n");
  EXPECT_EQ(RowsOf(client, "SELECT n FROM a_view WHERE id = 1"), "1\n");
  EXPECT_EQ(TokenAt(1), TokenAt(1));
  EXPECT_NE(TokenAt(1), TokenAt(2));
  EXPECT_EQ(Both(client, "INSERT INTO plain VALUES (1)").state, "25006");
}

TEST_F(Tokens, NoClauseGoesPastIt) {
  SqlClient client = Holding(TokenAt(2));
  const auto n_at = [&](const std::string& clause) {
    return RowsOf(client, "SELECT n FROM t " + clause + " WHERE id = 1");
  };
  EXPECT_EQ(n_at("FOR SYSTEM_TIME AS OF " + At(1)), "1\n");
  EXPECT_EQ(n_at("FOR SYSTEM_TIME AS OF " + At(3)), "2\n");
  EXPECT_EQ(n_at("FOR SYSTEM_TIME AS OF now()"), "2\n");
  EXPECT_EQ(n_at("FOR SOURCE_TIME AS OF " + SourceAt(3)), "2\n");
  EXPECT_EQ(n_at("FOR SOURCE_POSITION AS OF " + Position(3)), "2\n");
  EXPECT_EQ(n_at("FOR SOURCE_POSITION AS OF " + Position(1)), "1\n");
  EXPECT_EQ(RowsOf(client, "SELECT n, system_to = 'infinity', tx_to IS NULL FROM t "
                           "FOR SYSTEM_TIME ALL WHERE id = 1 ORDER BY n"),
            "0|f|f\n1|f|f\n2|t|t\n");
  EXPECT_EQ(RowsOf(client, "SELECT n, system_to = 'infinity', source_to = 'infinity', tx_to FROM "
                           "public_history.t WHERE id = 1 ORDER BY n DESC LIMIT 1"),
            "2|t|t|NULL\n");
  EXPECT_EQ(RowsOf(client, "SELECT n FROM a_view FOR SYSTEM_TIME AS OF " + At(3) + " WHERE id = 1"),
            "2\n");
  EXPECT_EQ(Both(client, "SELECT n FROM tidemark.as_of(NULL::t, " + At(3) + ")").state, "0A000");
  EXPECT_EQ(client.Simple("SELECT 1; SELECT n FROM t FOR SYSTEM_TIME AS OF " + At(3) +
                          " WHERE id = 1")
                .rows,
            "2\n");
}

TEST_F(Tokens, ItCapsAsOfToo) {
  SqlClient client = Holding(TokenAt(2));
  client.Simple("SET tidemark.as_of = " + At(3));
  EXPECT_EQ(RowsOf(client, "SELECT n FROM t WHERE id = 1"), "2\n");
  client.Simple("SET tidemark.as_of = " + At(1));
  EXPECT_EQ(RowsOf(client, "SELECT n FROM t WHERE id = 1"), "1\n");
}

TEST_F(Tokens, TwoSessionsWithOneTokenReadTheSameWhileTheMirrorGoesOn) {
  const std::string token = mirror().store_->Value("SELECT tidemark.snapshot_token()");
  const std::string count = "SELECT count(*) FROM instants";
  SqlClient before = Holding(token);
  const std::string rows = RowsOf(before, count);
  mirror().source_->Execute("INSERT INTO instants SELECT max(id) + 1, now() FROM instants");
  mirror().CatchUp();
  SqlClient after = Holding(token), latest = Client();
  EXPECT_EQ(RowsOf(before, count), rows);
  EXPECT_EQ(RowsOf(after, count), rows);
  EXPECT_NE(RowsOf(latest, count), rows);
}

TEST_F(Tokens, ADamagedOrForeignTokenIsRefused) {
  auto& store = *mirror().store_;
  const std::string good = TokenAt(1);
  std::string damaged = good;
  damaged[20] = damaged[20] == 'A' ? 'B' : 'A';
  const std::string await = store.Value("SELECT tidemark.await_token()");
  store.Execute("BEGIN; UPDATE tidemark.store SET id = gen_random_uuid()");
  const std::string foreign = TokenAt(1);
  store.Execute("ROLLBACK");
  for (const std::string& token : {damaged, await, foreign, std::string("x"), good + good,
                                   std::string("%%%"), good.substr(1)}) {
    SqlClient client = Holding(token);
    const Answer answer = Both(client, "SELECT n FROM t");
    EXPECT_EQ(answer.state, "22023") << token;
    EXPECT_EQ(answer.message, "invalid snapshot token") << token;
  }
}

TEST_F(Tokens, ATokenOfAnotherHistoryOfTheStoreIsRefused) {
  const std::string token = mirror().store_->Value(R"(
    SELECT tidemark.write_token(ROW('s', number, system_time + interval '1 second', 0, NULL))
    FROM tidemark.basis ORDER BY number LIMIT 1)");
  SqlClient client = Holding(token);
  EXPECT_EQ(Both(client, "SELECT n FROM t").state, "22023");
}

TEST_F(Tokens, ATokenAheadOfThisStoreIsRefusedOrAwaited) {
  auto& store = *mirror().store_;
  const char* const ahead = R"(
    SELECT tidemark.write_token(ROW($1, number + 1000, system_time, 0, NULL))
    FROM tidemark.basis ORDER BY number DESC LIMIT 1)";
  SqlClient snapshot = Holding(store.Value(ahead, {"s"}));
  const Answer refused = Both(snapshot, "SELECT n FROM t");
  EXPECT_EQ(refused.state, "0B000");
  EXPECT_EQ(refused.message, "snapshot token is ahead of this store");

  SqlClient await = Client();
  await.Simple("SET tidemark.await_timeout = '200ms'");
  await.Simple("SET tidemark.await = '" + store.Value(ahead, {"a"}) + "'");
  const Answer timeout = Both(await, "SELECT n FROM t");
  EXPECT_EQ(timeout.state, "57014");
  EXPECT_THAT(timeout.message, HasSubstr("tidemark.await_timeout"));
  EXPECT_EQ(await.Simple("BEGIN").state, "57014");
  await.Simple("SET tidemark.await = '" + store.Value("SELECT tidemark.await_token()") + "'");
  EXPECT_EQ(RowsOf(await, "SELECT n FROM t WHERE id = 1"), "3\n");
}

TEST_F(Tokens, SettingsAreThereFromTheStart) {
  SqlClient client = Client();
  EXPECT_EQ(RowsOf(client, "SHOW tidemark.as_of"), "\n");
  EXPECT_EQ(RowsOf(client, "SHOW tidemark.snapshot"), "\n");
  EXPECT_EQ(RowsOf(client, "SHOW tidemark.await"), "\n");
  EXPECT_EQ(RowsOf(client, "SHOW tidemark.await_timeout"), "10s\n");
}

}  // namespace
}  // namespace tidemark::tests
