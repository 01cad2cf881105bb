// Outgoing webhooks against a receiver that somebody else could have written: every event of a
// dataset arrives, in order, signed, whatever the receiver, the network and the process do.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "gateway/test_certificate.h"
#include "http/signature.h"
#include "http/webhook_delivery.h"
#include "temporal/status.h"
#include "temporal/webhook.h"
#include "tests/calls/receiver.h"
#include "tests/calls/tidemark_process.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using base::Deadline;
using testing::Each;
using testing::HasSubstr;

class Webhooks : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a VALUES (0, 0);"
        "CREATE TABLE b (id int PRIMARY KEY, n int); INSERT INTO b VALUES (0, 0)");
  }

  http::WebhookOptions Options(const std::string& url, std::vector<std::string> datasets = {}) {
    return {.name = "hook",
            .store_dsn = store_dsn_,
            .url = http::Url::Parse(url),
            .keys = {http::SigningKey(http::SignatureScheme::kStandard, Receiver::kSecret)},
            .datasets = std::move(datasets),
            .attempt_max = 1s,
            .first_pause = 10ms,
            .pause_max = 50ms};
  }
  static std::string UrlOf(const Receiver& receiver) {
    return "http://127.0.0.1:" + std::to_string(receiver.port()) + "/hook?key=hush";
  }
  std::jthread Deliver(const http::WebhookOptions& options) {
    return std::jthread([options](std::stop_token stop) { http::DeliverWebhook(options, stop); });
  }
  /// The webhook has begun, so what is captured from now on is for it.
  void AwaitBegun() {
    Await([&] { return Value("SELECT count(*) FROM tidemark.webhook") == "1"; });
  }
  void Await(const std::function<bool()>& condition) {
    const auto deadline = Deadline::After(60s);
    while (!deadline.passed() && !condition()) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(condition()) << Rows("SELECT * FROM tidemark.webhook");
  }
  void AwaitDelivered(int count) {
    Await([&] { return Value("SELECT delivered FROM tidemark.webhook") == std::to_string(count); });
  }
  /// Changes a table and captures it: one event, unless nobody changes it.
  void Publish(const std::string& relation) {
    source_->Execute("UPDATE " + relation + " SET n = n + 1");
    Captured({Snapshot(relation)});
  }
  std::vector<std::string> EventIds(const std::string& dataset) {
    const auto rows = store_->Execute(
        "SELECT id FROM tidemark.event WHERE dataset = $1 ORDER BY basis, dataset_id", {dataset});
    std::vector<std::string> ids;
    for (int i = 0; i < rows.rows(); ++i) ids.push_back(rows.str(i, 0));
    return ids;
  }
  std::string Row(const std::string& columns) {
    return Rows("SELECT " + columns + " FROM tidemark.webhook");
  }
};

std::vector<bool> Verified(const std::vector<nlohmann::json>& requests) {
  std::vector<bool> verified;
  for (const auto& request : requests) verified.push_back(request["verified"].get<bool>());
  return verified;
}

TEST_F(Webhooks, WhatComesAfterItsBeginningArrivesInOrderAndSigned) {
  Publish("a");
  const Receiver receiver({"200"});
  const auto thread = Deliver(Options(UrlOf(receiver), {"public.a"}));
  AwaitBegun();
  for (int i = 0; i < 5; ++i) {
    Publish("b");
    Publish("a");
    Captured({Snapshot("a")});  // unchanged
  }
  AwaitDelivered(5);
  const auto requests = receiver.Requests();
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_THAT(Verified(requests), Each(true));
  auto ids = EventIds("public.a");
  ids.erase(ids.begin());
  EXPECT_EQ(receiver.Arrivals(), ids);
  const auto& request = requests.back();
  EXPECT_EQ(request["id"], Value("SELECT id FROM tidemark.store") + "_" + ids.back());
  EXPECT_EQ(request["path"], "/hook?key=hush");
  EXPECT_EQ(request["host"], "127.0.0.1:" + std::to_string(receiver.port()));
  EXPECT_EQ(request["event"]["kind"], "dataset.changed");
  EXPECT_EQ(request["event"]["dataset"], "public.a");
  EXPECT_EQ(request["event"]["version"],
            Value("SELECT encode(hash, 'hex') FROM tidemark.version v JOIN tidemark.dataset d ON "
                  "d.id = v.dataset WHERE d.table_name = 'a'"));
}

TEST_F(Webhooks, AReceiverThatFailsInEveryWayGetsEverythingInOrder) {
  const Receiver receiver(
      {"500", "drop", "cut", "garbage", "hang", "302", "404", "503", "200", "drop", "200"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  for (int i = 0; i < 3; ++i) Publish("a");
  AwaitDelivered(3);
  EXPECT_EQ(receiver.Arrivals(), EventIds("public.a"));
  const auto requests = receiver.Requests();
  EXPECT_GE(requests.size(), 11u);
  EXPECT_THAT(Verified(requests), Each(true));
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(requests[i]["id"], requests[0]["id"]) << i;
  EXPECT_EQ(Row("failures, error"), "0|NULL\n");
}

TEST_F(Webhooks, WhatGoesWrongCanBeSeenAndShowsNoSecret) {
  const Receiver receiver({"500"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  const auto before = Row("basis, dataset");
  Publish("a");
  Await([&] { return std::stoi(Value("SELECT failures FROM tidemark.webhook")) >= 3; });
  EXPECT_EQ(Row("error, delivered"), "the receiver answered 500|0\n");
  EXPECT_EQ(Row("basis, dataset"), before);
  const auto shown = nlohmann::json::parse(temporal::LoadStatus(*store_))["webhooks"][0];
  EXPECT_EQ(shown["name"], "hook");
  EXPECT_EQ(shown["error"], "the receiver answered 500");
  EXPECT_GE(shown["failures"], 3);
  EXPECT_THAT(shown.dump(), testing::Not(HasSubstr("hush")));
}

TEST_F(Webhooks, AReceiverThatIsNotThereIsWaitedFor) {
  auto options = Options("http://127.0.0.1:1/hook?key=hush");
  {
    const auto thread = Deliver(options);
    AwaitBegun();
    Publish("a");
    Publish("a");
    Await([&] { return std::stoi(Value("SELECT failures FROM tidemark.webhook")) >= 2; });
    EXPECT_THAT(Row("error"), HasSubstr("could not connect to 127.0.0.1:1"));
    EXPECT_THAT(Row("error"), testing::Not(HasSubstr("hush")));
  }
  const Receiver receiver({"200"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitDelivered(2);
  EXPECT_EQ(receiver.Arrivals(), EventIds("public.a"));
}

TEST_F(Webhooks, AReceiverThatIsGoneIsLeftAloneUntilItIsEnabled) {
  const Receiver receiver({"410", "200"});
  {
    const auto thread = Deliver(Options(UrlOf(receiver)));
    AwaitBegun();
    Publish("a");
    Await([&] { return Row("disabled_at IS NOT NULL") == "t\n"; });
    Publish("a");
  }
  {
    // Nor does another start enable it.
    const auto thread = Deliver(Options(UrlOf(receiver)));
    std::this_thread::sleep_for(1200ms);
    EXPECT_EQ(receiver.Requests().size(), 1u);
    EXPECT_EQ(Row("error, failures, delivered"), "the receiver answered 410|1|0\n");
    store_->Execute("UPDATE tidemark.webhook SET disabled_at = NULL WHERE name = 'hook'");
    AwaitDelivered(2);
  }
  EXPECT_EQ(receiver.Arrivals(), EventIds("public.a"));
}

TEST_F(Webhooks, AnAnswerWithoutEndIsNotReadToItsEnd) {
  const Receiver receiver({"flood", "200"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  Publish("a");
  Publish("a");
  AwaitDelivered(2);
  EXPECT_EQ(receiver.Requests().size(), 2u) << "200 was said before the flood";
}

TEST_F(Webhooks, AConnectionIsKeptAndOpenedAgainWhenTheReceiverClosedIt) {
  const Receiver receiver({"200", "once", "200"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  for (int i = 1; i <= 3; ++i) {
    Publish("a");
    AwaitDelivered(i);
  }
  const auto requests = receiver.Requests();
  ASSERT_EQ(requests.size(), 3u) << "a closed connection is no failed attempt";
  EXPECT_EQ(requests[0]["connection"], requests[1]["connection"]);
  EXPECT_NE(requests[1]["connection"], requests[2]["connection"]);
}

TEST_F(Webhooks, OnlyACertificateThatIsTrustedAndOfThatNameIsTalkedTo) {
  const TemporaryFolder folder;
  const auto here = gateway::MakeCertificate(folder.path(), "localhost");
  const auto elsewhere = gateway::MakeCertificate(folder.path(), "elsewhere.example");
  const Receiver receiver({"200"}, {here.certificate_file, here.key_file});
  const Receiver impostor({"200"}, {elsewhere.certificate_file, elsewhere.key_file});
  const auto url = [](const Receiver& of) {
    return "https://localhost:" + std::to_string(of.port()) + "/";
  };
  const auto refused = [&](const Receiver& by) {
    const auto thread = Deliver(Options(url(by)));
    const auto before = std::stoi(Value("SELECT failures FROM tidemark.webhook"));
    Await([&] { return std::stoi(Value("SELECT failures FROM tidemark.webhook")) > before; });
    EXPECT_THAT(Row("error"), HasSubstr("could not agree on TLS with localhost"));
    EXPECT_THAT(by.Requests(), testing::IsEmpty());
  };
  temporal::EnsureWebhook(*store_, "hook");
  Publish("a");
  refused(receiver);  // nobody vouches for it
  ::setenv("SSL_CERT_FILE", elsewhere.certificate_file.c_str(), 1);
  refused(impostor);  // trusted, but not of this name
  ::setenv("SSL_CERT_FILE", here.certificate_file.c_str(), 1);
  {
    const auto thread = Deliver(Options(url(receiver)));
    Publish("a");
    AwaitDelivered(2);
  }
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(receiver.Arrivals(), EventIds("public.a"));
  EXPECT_THAT(Verified(receiver.Requests()), Each(true));
}

TEST_F(Webhooks, OneProcessDeliversAndAnotherTakesOver) {
  const Receiver receiver({"200"});
  auto first = Deliver(Options(UrlOf(receiver)));
  auto second = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  for (int i = 0; i < 10; ++i) Publish("a");
  AwaitDelivered(10);
  EXPECT_EQ(receiver.Requests().size(), 10u);
  first = {};
  for (int i = 0; i < 5; ++i) Publish("a");
  AwaitDelivered(15);
  EXPECT_EQ(receiver.Requests().size(), 15u);
  EXPECT_EQ(receiver.Arrivals(), EventIds("public.a"));
}

TEST_F(Webhooks, AStoreThatGoesAwayLosesNothing) {
  const Receiver receiver({"200"});
  const auto thread = Deliver(Options(UrlOf(receiver)));
  AwaitBegun();
  for (int i = 0; i < 10; ++i) {
    Publish("a");
    store_->Execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
        "current_database() AND pid <> pg_backend_pid()");
  }
  const auto ids = EventIds("public.a");
  Await([&] { return Row("basis || '-' || dataset") == ids.back() + "\n"; });
  EXPECT_EQ(receiver.Arrivals(), ids);
}

TEST_F(Webhooks, KilledBetweenDeliveriesLosesNothing) {
  const Receiver receiver({"200"});
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "tidemark.yaml")
      << "store: \"" << store_dsn_ << "\"\nallow_volatile_store: true\n"
      << "webhooks: {hook: {url: \"" << UrlOf(receiver) << "\", secret: \"" << Receiver::kSecret
      << "\"}}\n";
  const auto follow = [&](const std::string& kill_point) {
    return StartTidemark({"follow", "--config", (folder.path() / "tidemark.yaml").string()},
                         kill_point);
  };
  temporal::EnsureWebhook(*store_, "hook");
  for (const char* point : {"webhook.before_post", "webhook.after_post", "webhook.before_post:3",
                            "webhook.after_post:2"}) {
    for (int i = 0; i < 3; ++i) Publish("a");
    const auto ended = follow(point).Wait(Deadline::After(60s));
    ASSERT_TRUE(ended && ended->signal == SIGKILL) << point;
  }
  auto process = follow("");
  const auto ids = EventIds("public.a");
  Await([&] { return Row("basis || '-' || dataset") == ids.back() + "\n"; });
  EXPECT_EQ(receiver.Arrivals(), ids);
  EXPECT_THAT(Verified(receiver.Requests()), Each(true));
  process.Signal(SIGTERM);
  const auto stopped = process.Wait(Deadline::After(30s));
  EXPECT_TRUE(stopped && stopped->ok());
}

}  // namespace
}  // namespace tidemark::tests
