#include "gateway/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/session_wiring.h"

namespace tidemark::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSubsetOf;

constexpr std::string_view kAsOf = "select * from t for system_time as of '2026-01-01'";
constexpr std::string_view kAsOfParameter = "select * from t for system_time as of $1";
constexpr std::string_view kAsOfNow = "select * from t for system_time as of now()";

std::vector<std::string> Answers(const Script& script, ScriptedServer server = {}) {
  return Messages(Wiring(std::move(server)).Run(script));
}

std::vector<Script> PlainScripts() {
  return {
      Script().Query("select 1").Query("begin").Query("boom").Query("select 1").Query("rollback"),
      Script().Run("", "select 1").Sync().Run("s", "select 2").Run("s2", "boom").Sync(),
      Script().Run("s", "boom").Run("u", "select 2").Close("s").Sync().Bind("u").Execute().Sync(),
      Script().Query("copy in").Send('d', "1\n").Send('c').Query("select 1"),
      Script().Run("", "copy in").Sync().Send('d', "1").Send('c').Sync().Run("", "a").Sync(),
      Script().Send('F', "x").Send('Y', "unknown").Send('H').Query("").Send('X'),
  };
}

std::vector<Script> TemporalScripts() {
  return {
      Script().Query(kAsOf),
      Script().Query(kAsOfNow).Query("select 1").Query(kAsOf),
      Script().Query("begin").Query(kAsOf).Query("boom").Query(kAsOf).Query("rollback"),
      Script().Query("select * from t for system_time").Query(kAsOf),
      Script().Run("", kAsOf).Sync(),
      Script().Run("s", kAsOfParameter).Sync().Bind("s").Execute().Bind("s").Execute().Sync(),
      Script().Run("", "select 1").Run("s", kAsOf).Run("u", kAsOfParameter).Sync().Query("a"),
      Script().Run("", "boom").Run("s", kAsOf).Run("u", kAsOf).Sync().Run("s", kAsOf).Sync(),
      Script().Run("", "select 1").Run("", "select * from t for system_time").Sync().Query(kAsOf),
      Script().Query("copy t to stdout").Run("", "copy t to stdout").Sync(),
      Script().Run("", "copy in").Run("", kAsOf).Sync().Send('c').Sync(),
  };
}

TEST(Session, AStatementWithoutTemporalWordsPassesByteForByte) {
  for (const Script& script : PlainScripts()) {
    for (const bool eager : {true, false}) {
      Wiring wiring;
      ScriptedServer direct;
      EXPECT_EQ(wiring.Run(script, eager), direct.OnBytes(script.bytes));
      EXPECT_EQ(wiring.all_to_server, script.bytes);
    }
  }
}

TEST(Session, CutsOfTheBytesMakeNoDifference) {
  std::vector<Script> scripts = PlainScripts();
  std::ranges::copy(TemporalScripts(), std::back_inserter(scripts));
  for (const Script& script : scripts) {
    const std::string whole = Wiring().Run(script);
    for (const size_t bytes : {1, 2, 3, 5, 7, 64}) {
      for (const bool eager : {true, false}) {
        EXPECT_EQ(Wiring({}, bytes).Run(script, eager), whole);
      }
    }
  }
}

TEST(Session, EverySplitInTwoGivesTheSame) {
  for (const Script& script : TemporalScripts()) {
    const std::string whole = Wiring().Run(script);
    for (size_t at = 1; at < script.bytes.size(); ++at) {
      Wiring wiring;
      wiring.Run({script.bytes.substr(0, at)});
      EXPECT_EQ(wiring.Run({script.bytes.substr(at)}), whole);
    }
  }
}

// With a failure at each step the client gets one answer for each of its messages: what a server
// that knew the clauses would have said.
TEST(Session, AFailureAtAnyStepKeepsTheConversationInStep) {
  for (const Script& script : TemporalScripts()) {
    Wiring good;
    good.Run(script);
    for (int step = 1; step <= good.server.steps; ++step) {
      ScriptedServer failing;
      failing.fails_at = step;
      Wiring wiring(failing);
      const auto messages = Messages(wiring.Run(script));
      // Each Sync and Query not skipped over has its ReadyForQuery, and a probe shows that both
      // sides still agree.
      const auto before = messages.size();
      const auto after = Messages(wiring.Run(Script().Sync().Query("rollback").Query("probe")));
      const std::vector<std::string> tail(after.begin() + static_cast<long>(before), after.end());
      ASSERT_GE(tail.size(), 9u) << step;
      EXPECT_EQ(tail.back(), "Z I");
      for (const auto& message : after) {
        EXPECT_THAT(message, testing::Not(HasSubstr("refuses")));
      }
      EXPECT_FALSE(wiring.session.holds());
    }
  }
}

TEST(Session, SimpleQueryIsResolvedAndRewrittenUnseen) {
  Wiring wiring;
  const std::string answer = wiring.Run(Script().Query(kAsOf));
  EXPECT_THAT(Messages(answer), ElementsAre("T", "D", "C", "Z I"));
  ASSERT_EQ(wiring.server.received.size(), 3u);
  EXPECT_THAT(wiring.server.received[0], HasSubstr("to_regprocedure"));
  EXPECT_THAT(wiring.server.received[1], HasSubstr("ARRAY['t']"));
  EXPECT_THAT(wiring.server.received[2], HasSubstr("tidemark.as_of_tx(NULL::\"public\".\"t\""));
}

TEST(Session, TheStoreIsProbedOnceASession) {
  Wiring wiring;
  wiring.Run(Script().Query(kAsOf).Query(kAsOf).Run("", kAsOf).Sync());
  EXPECT_EQ(std::ranges::count_if(wiring.server.received,
                                  [](const std::string& message) {
                                    return message.find("to_regprocedure") != std::string::npos;
                                  }),
            1);
}

TEST(Session, DatabasesThatAreNotTidemarksPassUntouched) {
  for (const Script& script : TemporalScripts()) {
    ScriptedServer foreign;
    foreign.tidemark = false;
    Wiring wiring(foreign);
    ScriptedServer direct;
    EXPECT_EQ(wiring.Run(script), direct.OnBytes(script.bytes));
  }
}

TEST(Session, EvaluatedInstantsBecomeConstantsInTheSimpleProtocol) {
  Wiring wiring;
  EXPECT_THAT(Messages(wiring.Run(Script().Query(kAsOfNow))), ElementsAre("T", "D", "C", "Z I"));
  EXPECT_THAT(wiring.server.received.back(), HasSubstr("'2026-11-28 12:00:00+00'::timestamptz"));
}

TEST(Session, NothingIsEvaluatedWhenAFunctionIsVolatile) {
  ScriptedServer server;
  server.volatile_function = "nextval";
  Wiring wiring(server);
  EXPECT_THAT(
      Messages(wiring.Run(Script().Query("select * from t for system_time as of nextval('s')"))),
      ElementsAre(HasSubstr("E 42P17 FOR SYSTEM_TIME instant must not contain"), "Z I"));
  for (const auto& message : wiring.server.received) {
    EXPECT_THAT(message, testing::Not(HasSubstr("SELECT (nextval")));
  }
}

TEST(Session, SettlesBeforeEachBindOfAStatementWithALaterInstant) {
  Wiring wiring;
  wiring.Run(Script().Run("s", kAsOfParameter).Bind("s").Execute().Sync());
  std::vector<std::string> settles;
  for (size_t i = 0; i < wiring.server.received.size(); ++i) {
    if (wiring.server.received[i] == "E tidemark$settle") {
      settles.push_back(wiring.server.received.at(i + 3));
    }
  }
  EXPECT_THAT(settles, ElementsAre("B s", "B s"));
}

TEST(Session, AStringOfSeveralStatementsSettlesUnseenRightBeforeTheOneThatHasTo) {
  for (const size_t bytes : {1, 1 << 20}) {
    Wiring wiring({}, bytes);
    const auto script = Script().Query("select 1; select * from t for system_time as of now()");
    EXPECT_THAT(Messages(wiring.Run(script)), ElementsAre("T", "D", "C", "T", "D", "C", "Z I"));
    EXPECT_THAT(wiring.server.received.back(),
                HasSubstr("select 1; SELECT tidemark.settle(); select * from tidemark.as_of"));
  }
}

TEST(Session, AnErrorOfASettlingInsideAStringReachesTheClient) {
  ScriptedServer server;
  server.fails_at = 4;  // after probe, resolve and the first statement of the string
  EXPECT_THAT(
      Answers(Script().Query("select 1; select * from t for system_time as of now()"), server),
      ElementsAre("T", "D", "C", "E XX000 it failed", "Z I"));
}

TEST(Session, ExecuteSettlesOnceAStatementThatHasToWasPreparedInSql) {
  Wiring wiring;
  const std::string prepare = "prepare p as " + std::string(kAsOfNow);
  wiring.Run(Script().Query("execute q"));
  EXPECT_EQ(wiring.server.received.back(), "Q execute q");
  wiring.Run(Script().Query(prepare));
  wiring.to_client.clear();
  EXPECT_THAT(Messages(wiring.Run(Script().Query("execute p"))), ElementsAre("T", "D", "C", "Z I"));
  EXPECT_EQ(wiring.server.received.back(), "Q SELECT tidemark.settle(); execute p");
  wiring.server.received.clear();
  wiring.Run(Script().Run("", "execute p").Sync());
  EXPECT_THAT(wiring.server.received, testing::Contains("E tidemark$settle"));
}

TEST(Session, ACloseThatTheServerSkipsChangesNothing) {
  Wiring wiring;
  wiring.Run(Script().Parse("s", kAsOfParameter).Sync());
  wiring.Run(Script().Run("", "boom").Close("s").Sync(), /*eager=*/false);
  wiring.server.received.clear();
  wiring.Run(Script().Bind("s").Execute().Sync());
  EXPECT_THAT(wiring.server.received, testing::Contains("E tidemark$settle"));
  wiring.Run(Script().Close("s").Sync());
  wiring.server.received.clear();
  wiring.Run(Script().Parse("s", "select 1").Bind("s").Execute().Sync());
  EXPECT_THAT(wiring.server.received, testing::Not(testing::Contains("E tidemark$settle")));
}

TEST(Session, AnErrorBeforeAHeldParseLeavesItToTheServer) {
  EXPECT_THAT(Answers(Script().Run("", "boom").Parse("s", kAsOf).Bind("s").Execute().Sync()),
              ElementsAre("1", "2", "n", HasSubstr("E 22012"), "Z I"));
}

TEST(Session, AnErrorOfAnalysisFailsTheTransactionAtTheServer) {
  const auto answers =
      Answers(Script().Query("begin").Query("select * from t for system_time").Query("select 1"));
  EXPECT_THAT(answers, ElementsAre("T", "D", "C", "Z T", HasSubstr("E 42601"), "Z E",
                                   HasSubstr("E 25P02"), "Z E"));
}

TEST(Session, AnErrorOfAnalysisSkipsToSyncInTheExtendedProtocol) {
  const auto answers = Answers(
      Script().Run("", "select 1").Run("", "select * from t for system_time").Run("", "a").Sync());
  EXPECT_THAT(answers, ElementsAre("1", "2", "n", "D", "C", HasSubstr("E 42601"), "Z I"));
}

TEST(Session, RefusalsPointIntoTheClientsText) {
  ScriptedServer server;
  server.kind = "plain";
  const auto answers = Answers(Script().Query(kAsOf), server);
  EXPECT_THAT(answers, ElementsAre("E 42809 relation \"t\" is not system-versioned at 15", "Z I"));
}

TEST(Session, ErrorsOfRewrittenStatementsPointIntoTheClientsText) {
  const std::string text = std::string(kAsOf) + " where boom";
  const std::string error = "E 22012 division by zero at " + std::to_string(text.find("boom") + 1);
  EXPECT_THAT(Answers(Script().Query(text)), ElementsAre(error, "Z I"));
  EXPECT_THAT(Answers(Script().Run("", text).Sync()), ElementsAre("1", "2", "n", error, "Z I"));
}

TEST(Session, ErrorsInAnEvaluatedInstantPointIntoTheClientsText) {
  const std::string text = "select 'é', * from t for system_time as of ago()";
  ScriptedServer server;
  server.fails_at = 3;
  server.failure.Set('P', "9");
  EXPECT_THAT(Answers(Script().Query(text), server), ElementsAre("E XX000 it failed at 44", "Z I"));
}

TEST(Session, AnInstantOfTheWrongTypeIsSaidSo) {
  ScriptedServer server;
  server.fails_at = 3;
  server.failure = {{{'S', "ERROR"},
                     {'V', "ERROR"},
                     {'C', "42883"},
                     {'M', "function tidemark.tx_at(regclass, integer) does not exist"},
                     {'H', "No function matches."}}};
  EXPECT_THAT(Answers(Script().Query(kAsOf), server),
              ElementsAre("E 42804 FOR SYSTEM_TIME instant must be of type timestamp with time "
                          "zone, not integer",
                          "Z I"));
}

TEST(Session, AsynchronousMessagesFlowWhileAStatementIsHeld) {
  ScriptedServer server;
  wire::ErrorFields{{{'S', "NOTICE"}, {'C', "00000"}, {'M', "hello"}}}.Write(server.asynchronous,
                                                                             'N');
  const auto answers = Answers(Script().Query(kAsOf), server);
  EXPECT_THAT(answers,
              ElementsAre("N 00000 hello", "N 00000 hello", "N 00000 hello", "T", "D", "C", "Z I"));
}

TEST(Session, FatalErrorsOfHiddenMessagesReachTheClient) {
  for (const int step : {1, 2, 3}) {
    ScriptedServer server;
    server.fails_at = step;
    server.failure.Set('V', "FATAL");
    server.failure.Set('C', "57P01");
    const auto answers = Answers(Script().Query("select * from t for system_time"), server);
    if (step <= 2) {
      EXPECT_THAT(answers, testing::Contains(HasSubstr("57P01")));
    }
  }
}

TEST(Session, StopsReadingTheClientWhileAStatementIsHeld) {
  Session session;
  session.OnFrontendBytes(Script().Query(kAsOf).bytes);
  EXPECT_TRUE(session.holds());
  EXPECT_TRUE(session.wants_frontend());
  EXPECT_EQ(session.OnFrontendBytes(std::string(64 * 1024, 'x')).to_backend, "");
  EXPECT_FALSE(session.wants_frontend());
}

TEST(Session, LongTextsStreamThroughUnheld) {
  Session session({.text_bytes_max = 100});
  const std::string bytes = Script().Query(std::string(kAsOf) + std::string(200, ' ')).bytes;
  std::string sent;
  for (const char c : bytes) {
    sent += session.OnFrontendBytes({&c, 1}).to_backend;
  }
  EXPECT_EQ(sent, bytes);
  EXPECT_FALSE(session.holds());
}

TEST(Session, LargeRowsStreamThroughInPieces) {
  Session session;
  session.OnFrontendBytes(Script().Query("select 1").bytes);
  std::string row;
  wire::DataRow{{std::string(1'000'000, 'x')}}.Write(row);
  size_t received = 0;
  for (size_t at = 0; at < row.size(); at += 1000) {
    received += session.OnBackendBytes(std::string_view(row).substr(at, 1000)).to_client.size();
    EXPECT_GE(received + 5, std::min(at + 1000, row.size()));
  }
  EXPECT_EQ(received, row.size());
}

TEST(Session, BytesThatAreNoProtocolPassUncut) {
  Session session;
  EXPECT_EQ(session.OnBackendBytes("Ecould not fork new process\n").to_client,
            "Ecould not fork new process\n");
  EXPECT_EQ(session.OnFrontendBytes("anything").to_backend, "anything");
}

TEST(Session, StopSaysFarewellBetweenMessages) {
  const base::Error reason(base::kAdminShutdown, "stopping");
  Session session;
  EXPECT_THAT(Messages(session.OnStop(reason).to_client), ElementsAre("E 57P01 stopping"));
  EXPECT_THAT(Messages(session.OnStop(reason).to_backend), ElementsAre("X"));
  std::string row;
  wire::DataRow{{"abc"}}.Write(row);
  session.OnBackendBytes(std::string_view(row).substr(0, 8));
  EXPECT_EQ(session.OnStop(reason).to_client, "");
}

}  // namespace
}  // namespace tidemark::gateway
