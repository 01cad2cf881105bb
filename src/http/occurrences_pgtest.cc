// Signed calls against a real store: what is verified is kept once, what is not never reaches it.
#include "http/occurrences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "temporal/store.h"
#include "tests/cluster.h"

namespace tidemark::http {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

constexpr std::chrono::sys_seconds kNow(1'800'000'000s);

class OccurrencePages : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    dsn_ = tests::Cluster::Shared().CreateDatabase("occurrences" + std::to_string(++number));
    store_.emplace(Open());
    temporal::Migrate(*store_);
  }
  pg::Connection Open() const { return temporal::OpenStore(dsn_, base::Deadline::After(30s)); }

  static OccurrencePage Page() {
    OccurrenceRules many;
    many.keys = {"old key", "new key"};
    many.per_minute = 1000;
    OccurrenceRules few;
    few.keys = {"key"};
    few.per_minute = 3;
    OccurrenceRules github;
    github.scheme = SignatureScheme::kGithub;
    github.keys = {"It's a Secret to Everybody"};
    return OccurrencePage({{"crm.customers", many}, {"crm.few", few}, {"crm.github", github}},
                          [] { return kNow; });
  }
  static Request Signed(const std::string& id, const std::string& key = "new key",
                        std::chrono::sys_seconds at = kNow, const std::string& body = "{}") {
    Request request{.method = "POST", .path = "", .query = {}, .headers = {}, .body = body};
    for (auto& [name, value] : SignStandard({key}, id, at, body)) request.headers[name] = value;
    return request;
  }
  Response Post(const Request& request, const std::string& dataset = "crm.customers") {
    return Page().Answer(request, dataset, &*store_);
  }
  std::string Kept() { return store_->Value("SELECT count(*) FROM tidemark.occurrence"); }

  std::string dsn_;
  std::optional<pg::Connection> store_;
};

std::string HeaderOf(const Response& response, const std::string& wanted) {
  for (const auto& [name, value] : response.headers) {
    if (name == wanted) return value;
  }
  return "";
}

TEST_F(OccurrencePages, WhatIsVerifiedIsKeptAndAcknowledged) {
  const auto answer = Post(Signed("msg_1"));
  EXPECT_EQ(answer.status, 202) << answer.body;
  const auto body = json::parse(answer.body);
  EXPECT_EQ(body["dataset"], "crm.customers");
  EXPECT_EQ(body["message_id"], "msg_1");
  EXPECT_EQ(body["state"], "queued");
  EXPECT_EQ(store_->Value("SELECT received_at FROM tidemark.occurrence"), body["received_at"]);
  EXPECT_EQ(store_->Value("SELECT extract(epoch FROM signed_at)::bigint || state FROM "
                          "tidemark.occurrence"),
            "1800000000queued");
  EXPECT_EQ(Post(Signed("msg_2", "old key")).status, 202) << "while the key is being changed";
}

TEST_F(OccurrencePages, AReplayIsRefusedForEachDatasetByItself) {
  EXPECT_EQ(Post(Signed("msg_1")).status, 202);
  const auto again = Post(Signed("msg_1"));
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(json::parse(again.body)["sqlstate"], "23505");
  EXPECT_EQ(Post(Signed("msg_1", "new key", kNow + 1s)).status, 409) << "signed anew, same message";
  EXPECT_EQ(Post(Signed("msg_1", "key"), "crm.few").status, 202);
  EXPECT_EQ(Kept(), "2");
}

TEST_F(OccurrencePages, AReplayUnderAnotherDeliveryIdIsRefused) {
  Request request{.method = "POST",
                  .path = "",
                  .query = {},
                  .headers = {{"x-github-delivery", "one"},
                              {"x-hub-signature-256",
                               "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b04"
                               "3e17"}},
                  .body = "Hello, World!"};
  EXPECT_EQ(Post(request, "crm.github").status, 202);
  request.headers["x-github-delivery"] = "two";
  EXPECT_EQ(Post(request, "crm.github").status, 409);
}

TEST_F(OccurrencePages, OfAHundredEqualPostsAtOnceOneIsAccepted) {
  std::atomic<int> accepted = 0, replayed = 0;
  std::vector<std::jthread> senders;
  for (int i = 0; i < 25; ++i) {
    senders.emplace_back([&] {
      auto store = Open();
      for (int j = 0; j < 4; ++j) {
        const int status = Page().Answer(Signed("msg_1"), "crm.customers", &store).status;
        if (status == 202) ++accepted;
        if (status == 409) ++replayed;
      }
    });
  }
  senders.clear();
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(replayed, 99);
  EXPECT_EQ(Kept(), "1");
}

TEST_F(OccurrencePages, OfAHundredDifferentPostsAtOnceNoneIsLostAndTheLimitIsExact) {
  std::atomic<int> accepted = 0, limited = 0;
  std::vector<std::jthread> senders;
  for (int i = 0; i < 25; ++i) {
    senders.emplace_back([&, i] {
      auto store = Open();
      for (int j = 0; j < 4; ++j) {
        const auto id = std::to_string(i) + "_" + std::to_string(j);
        if (Page().Answer(Signed(id), "crm.customers", &store).status == 202) ++accepted;
        if (Page().Answer(Signed(id, "key"), "crm.few", &store).status == 429) ++limited;
      }
    });
  }
  senders.clear();
  EXPECT_EQ(accepted, 100);
  EXPECT_EQ(limited, 97);
  EXPECT_EQ(Kept(), "103");
}

TEST_F(OccurrencePages, WhatIsNotVerifiedIsNotKept) {
  auto unsigned_one = Signed("msg_1");
  unsigned_one.headers.clear();
  auto altered = Signed("msg_1");
  altered.body = "{ }";
  for (const auto& request :
       {unsigned_one, altered, Signed("msg_1", "another key"), Signed("msg.1"),
        Signed("msg_1", "new key", kNow - 301s), Signed("msg_1", "new key", kNow + 301s)}) {
    const auto answer = Post(request);
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.content_type, "application/problem+json");
    EXPECT_NE(HeaderOf(answer, "WWW-Authenticate"), "");
    EXPECT_THAT(answer.body, testing::Not(HasSubstr("key\"")));
  }
  EXPECT_EQ(Kept(), "0");
  EXPECT_EQ(Post(Signed("msg_1", "new key", kNow - 300s)).status, 202);
  EXPECT_EQ(Post(Signed("msg_2", "new key", kNow + 300s)).status, 202);
}

TEST_F(OccurrencePages, WhetherADatasetIsThereCannotBeTold) {
  store_->Execute(
      "INSERT INTO tidemark.source (name) VALUES ('crm'); "
      "INSERT INTO tidemark.journal (name, source, publication) VALUES ('crm', 1, 'tidemark'), "
      "('crm.orders', 1, NULL); "
      "INSERT INTO tidemark.dataset (journal, schema_name, table_name, strategy, keying, "
      "key_columns) VALUES (1, 'crm', 'customers', 'cdc', 'key', '{id}')");
  const auto nowhere = Post(Signed("msg_1"), "crm.nowhere");
  EXPECT_EQ(nowhere.status, 404);
  const auto undeclared = Post(Signed("msg_1"), "crm.orders");
  EXPECT_EQ(undeclared.status, 404);
  EXPECT_EQ(undeclared.body, nowhere.body);
  // Declared where it is served, but in fact one of the tables of a mirror.
  EXPECT_EQ(Post(Signed("msg_1")).body, nowhere.body);
  EXPECT_EQ(Kept(), "0");
}

TEST_F(OccurrencePages, TheLimitSaysWhenThereIsRoomAgain) {
  for (const char* id : {"1", "2", "3"}) {
    EXPECT_EQ(Post(Signed(id, "key"), "crm.few").status, 202);
  }
  store_->Execute(
      "UPDATE tidemark.occurrence SET received_at = received_at - interval '20 seconds' WHERE "
      "message_id = '1'");
  const auto limited = Post(Signed("4", "key"), "crm.few");
  EXPECT_EQ(limited.status, 429);
  const int seconds = std::stoi(HeaderOf(limited, "Retry-After"));
  EXPECT_GT(seconds, 20);
  EXPECT_LE(seconds, 40);
  EXPECT_EQ(Post(Signed("1", "key"), "crm.few").status, 409) << "a replay is told so even now";
  store_->Execute(
      "UPDATE tidemark.occurrence SET received_at = received_at - interval '41 seconds' WHERE "
      "message_id = '1'");
  EXPECT_EQ(Post(Signed("4", "key"), "crm.few").status, 202);
  EXPECT_EQ(Post(Signed("5", "key"), "crm.few").status, 429);
}

TEST_F(OccurrencePages, OnlyWhatCannotBeReplayedAnyMoreIsForgotten) {
  store_->Execute(R"(
    INSERT INTO tidemark.occurrence (dataset, message_id, received_at, kept_until, state, due_at)
    SELECT 'crm.customers', 'old' || i, now() - interval '8 days', now() - interval '1 day',
           (ARRAY['done', 'failed', 'queued', 'running'])[i % 4 + 1], now()
    FROM generate_series(0, 39) i)");
  EXPECT_EQ(Post(Signed("msg_1")).status, 202);
  // Those that are queued are answered by the capture for the new one; the running are not ours.
  EXPECT_EQ(store_->Value("SELECT string_agg(DISTINCT state || left(message_id, 3), ',') FROM "
                          "tidemark.occurrence"),
            "queuedmsg,runningold");
  EXPECT_EQ(store_->Value("SELECT min(kept_until) > now() + interval '23 hours' FROM "
                          "tidemark.occurrence WHERE state = 'queued'"),
            "t");
}

TEST_F(OccurrencePages, WithoutAStoreNothingIsAcknowledged) {
  const auto answer = Page().Answer(Signed("msg_1"), "crm.customers", nullptr);
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(HeaderOf(answer, "Retry-After"), "");
  EXPECT_EQ(Page().Answer(Signed("msg_1", "another key"), "crm.customers", nullptr).status, 401);
}

TEST_F(OccurrencePages, AHotStandbySaysThatItTakesNone) {
  tests::Cluster cluster;
  {
    auto primary = temporal::OpenStore(cluster.Dsn(), base::Deadline::After(30s));
    temporal::Migrate(primary);
  }
  cluster.Stop();
  const auto signal = cluster.directory() / "data/standby.signal";
  std::ofstream{signal};
  std::filesystem::permissions(signal, std::filesystem::perms::all);
  cluster.Start();
  auto standby = temporal::OpenStore(cluster.Dsn(), base::Deadline::After(30s));
  ASSERT_EQ(standby.Value("SELECT pg_is_in_recovery()"), "t");
  const auto answer = Page().Answer(Signed("msg_1"), "crm.customers", &standby);
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("standby"));
}

TEST_F(OccurrencePages, AreRoutedForAnybody) {
  Router router;
  AddOccurrences(router, {}, [] { return kNow; });
  const auto found = router.Find("POST", "/v1/datasets/crm.customers/occurrences");
  ASSERT_TRUE(std::holds_alternative<Router::Route>(found));
  const auto& route = std::get<Router::Route>(found);
  EXPECT_EQ(route.access, Access::kOpen);
  const auto& handler = std::get<StoreOptionalHandler>(*route.page);
  EXPECT_EQ(handler(Signed("msg_1"), route.parameters, nullptr).status, 404);
}

}  // namespace
}  // namespace tidemark::http
