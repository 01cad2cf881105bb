// Sessions that may be pinned, from their start-up on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/session_wiring.h"

namespace tidemark::gateway {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Start-up as a server without a password does it.
std::string StartUp(Session& session, ScriptedServer& server) {
  using std::string_view_literals::operator""sv;
  const Steps sent = session.OnStartup("\0\0\0\x10\0\x03\0\0user\0u\0\0"sv);
  EXPECT_FALSE(sent.to_backend.empty());
  std::string ready;
  wire::ReadyForQuery{'I'}.Write(ready);
  Steps steps = session.OnBackendBytes(ready);
  EXPECT_EQ(steps.to_client, "") << "held back until the session has been probed";
  steps = session.OnBackendBytes(server.OnBytes(steps.to_backend));
  EXPECT_FALSE(session.holds());
  return steps.to_client;
}

TEST(SessionPins, StartUpEndsOnceTheSessionHasBeenProbed) {
  Session session;
  ScriptedServer server;
  EXPECT_THAT(Messages(StartUp(session, server)), ElementsAre("Z I"));
}

TEST(SessionPins, AProbeThatFailsIsNoConcernOfTheClient) {
  Session session;
  ScriptedServer server;
  server.fails_at = 1;
  EXPECT_THAT(Messages(StartUp(session, server)), ElementsAre("Z I"));
}

TEST(SessionPins, SuperusersAreRefusedWhereTheyAreNotServed) {
  Session session({.superusers = false});
  ScriptedServer server;
  server.superuser = true;
  EXPECT_THAT(Messages(StartUp(session, server)),
              ElementsAre("E 28000 superusers are not served here"));
}

TEST(SessionPins, ASessionThatBeginsPinnedIsRewrittenFromItsFirstStatement) {
  ScriptedServer server;
  server.pin = "pinned";
  Wiring wiring(server);
  wiring.to_client = StartUp(wiring.session, wiring.server);
  wiring.Run(Script().Query("select * from t").Query("select 1"));
  EXPECT_THAT(wiring.server.received,
              testing::Contains(HasSubstr("Q select * from tidemark.as_of_tx(")));
  EXPECT_EQ(wiring.server.received.back(), "Q select 1");
}

TEST(SessionPins, OtherSessionsAskNothing) {
  ScriptedServer server;
  Wiring wiring(server);
  StartUp(wiring.session, wiring.server);
  wiring.server.received.clear();
  wiring.Run(Script().Query("select * from t").Run("s", "select * from t").Sync());
  EXPECT_EQ(wiring.server.received.size(), 6u);
}

TEST(SessionPins, AStatementParsedForAnotherPinIsParsedAnewBeforeItsBind) {
  ScriptedServer server;
  Wiring wiring(server);
  StartUp(wiring.session, wiring.server);
  const std::string unpinned = wiring.Run(
      Script().Run("s", "select * from t").Sync().Query("set tidemark.as_of").Bind("s").Execute().Sync());
  EXPECT_THAT(wiring.server.received,
              testing::Contains(HasSubstr("P s: select * from tidemark.as_of_tx(")));
  EXPECT_THAT(Messages(unpinned), ElementsAre("1", "2", "n", "D", "C", "Z I", "T", "D", "C", "Z I",
                                              "2", "D", "C", "Z I"));
  wiring.server.received.clear();
  wiring.Run(Script().Query("reset tidemark.as_of").Bind("s").Execute().Sync());
  EXPECT_THAT(wiring.server.received, testing::Contains("P s: select * from t"));
}

TEST(SessionPins, ABindWhosePinIsAskedForMayComeInPieces) {
  for (const size_t piece_bytes : {1, 7, 64}) {
    ScriptedServer server;
    Wiring wiring(server, piece_bytes);
    StartUp(wiring.session, wiring.server);
    const std::string answers = wiring.Run(
        Script().Run("s", "select * from t").Sync().Query("set tidemark.as_of").Bind("s").Execute().Sync());
    EXPECT_EQ(Messages(answers).back(), "Z I");
    EXPECT_EQ(Messages(answers).size(), 14u);
  }
}

TEST(SessionPins, ARefusedBindFailsAloneAndTheSessionGoesOn) {
  ScriptedServer server;
  Wiring wiring(server);
  StartUp(wiring.session, wiring.server);
  const std::string answers = wiring.Run(Script()
                                             .Run("s", "insert into x values (1)")
                                             .Sync()
                                             .Query("set tidemark.as_of")
                                             .Bind("s")
                                             .Execute()
                                             .Sync()
                                             .Query("select 1"));
  EXPECT_THAT(Messages(answers),
              testing::Contains("E 25006 cannot execute INSERT in a session pinned to the past at "
                                "1"));
  EXPECT_EQ(Messages(answers).back(), "Z I");
}

TEST(SessionPins, AReaderIsToldThatItCannotLeaveReadOnlyMode) {
  ScriptedServer server;
  server.reader = true;
  Wiring wiring(server);
  StartUp(wiring.session, wiring.server);
  EXPECT_THAT(Messages(wiring.Run(Script().Query("begin read write"))),
              ElementsAre("E 25006 cannot leave read-only mode as a reader at 1", "Z I"));
}

}  // namespace
}  // namespace tidemark::gateway
