// Occurrences from end to end: `tidemark serve`, which knows no source, takes the call; `tidemark
// follow` captures; either may be killed at any time.
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "http/client.h"
#include "http/signature.h"
#include "temporal/occurrence.h"
#include "tests/calls/tidemark_process.h"
#include "tests/capture/capture_fixture.h"
#include "tests/free_port.h"

namespace tidemark::tests {
namespace {

using base::Deadline;

constexpr const char* kSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

class OccurrenceCalls : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute("CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a VALUES (0, 0)");
    const std::string store = "store: \"" + store_dsn_ + "\"\nallow_volatile_store: true\n";
    std::ofstream(Config("follow")) << store << "sources: {shop: {postgres: \"" << source_dsn_
                                    << "\"}}\ndatasets: {public.a: {source: shop, relation: "
                                       "public.a, strategy: snapshot, key: [id]}}\n";
    std::ofstream(Config("serve"))
        << store << "gateway: {listen: \"127.0.0.1:" << FreePort()
        << "\"}\nhttp: {listen: \"127.0.0.1:" << port_ << "\"}\noccurrences: {public.a: {secret: \""
        << kSecret << "\"}}\n";
  }
  std::string Config(const std::string& of) const {
    return (folder_.path() / (of + ".yaml")).string();
  }
  base::ChildProcess Start(const std::string& command, const std::string& kill_point = "") const {
    return StartTidemark({command, "--config", Config(command)}, kill_point);
  }

  /// The status that serve answers to a call, once it listens.
  int Post(const std::string& id, const std::string& secret = kSecret,
           const std::string& dataset = "public.a", const std::string& body = "{}") {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    const auto headers = http::SignStandard(
        {http::SigningKey(http::SignatureScheme::kStandard, secret)}, id, now, body);
    const auto url = http::Url::Parse("http://127.0.0.1:" + std::to_string(port_) +
                                      "/v1/datasets/" + dataset + "/occurrences");
    const auto deadline = Deadline::After(30s);
    for (;;) {
      try {
        return http::Client(url).Post(body, headers, Deadline::After(10s), {});
      } catch (const base::Error& error) {
        if (error.state() != base::kCannotConnect || deadline.passed()) throw;
      }
      std::this_thread::sleep_for(20ms);
    }
  }
  void Await(const std::string& sql, const std::string& value) {
    const auto deadline = Deadline::After(60s);
    while (!deadline.passed() && Value(sql) != value) std::this_thread::sleep_for(10ms);
    ASSERT_EQ(Value(sql), value) << sql << "\n" << Rows("TABLE tidemark.occurrence");
  }

  TemporaryFolder folder_;
  int port_ = FreePort();
};

/// What `tidemark status` shows to people.
std::string Shown(const std::string& config) {
  std::string text;
  Run({TIDEMARK_BINARY, "status", "--config", config}, &text);
  return text;
}

constexpr const char* kOpen = "SELECT count(*) FROM tidemark.occurrence WHERE state <> 'done'";

TEST_F(OccurrenceCalls, WhatServeTakesFollowCaptures) {
  auto serve = Start("serve");
  EXPECT_EQ(Post("msg_1", "another secret"), 401);
  EXPECT_EQ(Post("msg_1", kSecret, "public.b"), 404);
  EXPECT_EQ(Post("msg_1", kSecret, "public.a", std::string((size_t{1} << 20) + 1, 'x')), 413);
  EXPECT_EQ(Post("msg_1", kSecret, "public.a", std::string(size_t{1} << 20, 'x')), 202);
  EXPECT_EQ(Post("msg_1"), 409);
  EXPECT_THAT(Shown(Config("serve")),
              testing::HasSubstr("problem: 1 occurrences of public.a wait since"));
  auto follow = Start("follow");
  ASSERT_NO_FATAL_FAILURE(Await(kOpen, "0"));
  ExpectSame("SELECT * FROM public.a");
  EXPECT_THAT(Shown(Config("serve")),
              testing::HasSubstr("occurrences 0 open, the last one done, received"));
  source_->Execute("UPDATE a SET n = n + 1");
  EXPECT_EQ(Post("msg_2"), 202);
  ASSERT_NO_FATAL_FAILURE(Await(kOpen, "0"));
  ExpectSame("SELECT * FROM public.a");
  for (auto* process : {&follow, &serve}) {
    process->Signal(SIGTERM);
    const auto ended = process->Wait(Deadline::After(30s));
    EXPECT_TRUE(ended && ended->ok());
  }
}

TEST_F(OccurrenceCalls, WhatWasAcknowledgedOutlivesBothProcesses) {
  {
    auto serve = Start("serve");
    auto follow = Start("follow");
    source_->Execute("BEGIN; LOCK TABLE a; UPDATE a SET n = 7");
    EXPECT_EQ(Post("msg_1"), 202);
    ASSERT_NO_FATAL_FAILURE(
        Await("SELECT count(*) FROM tidemark.occurrence WHERE state = 'running'", "1"));
    EXPECT_EQ(Post("msg_2"), 202);
    serve.Signal(SIGKILL);
    follow.Signal(SIGKILL);
    serve.Wait(Deadline::After(30s));
    follow.Wait(Deadline::After(30s));
    source_->Execute("COMMIT");
  }
  auto follow = Start("follow");
  ASSERT_NO_FATAL_FAILURE(Await(kOpen, "0"));
  ExpectSame("SELECT * FROM public.a");
}

TEST_F(OccurrenceCalls, KilledAnywhereWhileItCapturesTheNextProcessCaptures) {
  int number = 0;
  for (const char* point :
       {"occurrences.claimed", "stage.done", "capture.member_read", "capture.member_done",
        "publish.before_commit", "publish.after_commit"}) {
    source_->Execute("UPDATE a SET n = n + 1");
    const auto receipt = temporal::AcceptOccurrence(
        *store_, {.dataset = "public.a", .message_id = "msg_" + std::to_string(++number)}, 1000);
    ASSERT_EQ(receipt.acceptance, temporal::Acceptance::kAccepted);
    const auto ended = Start("follow", point).Wait(Deadline::After(60s));
    ASSERT_TRUE(ended && ended->signal == SIGKILL) << point;
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.occurrence WHERE state = 'running'"),
              std::to_string(number))
        << point << ": what was not settled is captured again";
  }
  auto follow = Start("follow");
  ASSERT_NO_FATAL_FAILURE(Await(kOpen, "0"));
  ExpectSame("SELECT * FROM public.a");
  EXPECT_EQ(Value("SELECT count(DISTINCT capture) FROM tidemark.occurrence"), "1");
  ExpectChainsHold();
}

}  // namespace
}  // namespace tidemark::tests
