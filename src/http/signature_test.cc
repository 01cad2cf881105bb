#include "http/signature.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace tidemark::http {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// The published example of each scheme: Standard Webhooks' reference implementations, GitHub's
// "Testing the webhook payload validation", Stripe's libraries.
constexpr const char* kStandardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
constexpr const char* kGithubSecret = "It's a Secret to Everybody";
constexpr const char* kStripeSecret = "webhook_secret";

Request StandardExample() {
  return {.method = "POST",
          .path = "/",
          .query = {},
          .headers = {{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
                      {"webhook-timestamp", "1614265330"},
                      {"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
          .body = R"({"test": 2432232314})"};
}

Request GithubExample() {
  return {.method = "POST",
          .path = "/",
          .query = {},
          .headers = {{"x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"},
                      {"x-hub-signature-256",
                       "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
          .body = "Hello, World!"};
}

Request StripeExample() {
  return {.method = "POST",
          .path = "/",
          .query = {},
          .headers = {{"stripe-signature",
                       "t=1533204620,"
                       "v1=f0bdba6d4eacbd8ad8a3bbadd7248e633ec1477f7899c124c51b39405fa36613,"
                       "v0=63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef"}},
          .body = R"({
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "ii_123",
      "object": "invoiceitem",
      "amount": 1000,
      "currency": "usd",
      "customer": "cus_123",
      "date": 1533204620,
      "description": "Test Invoice Item",
      "discountable": false,
      "invoice": "in_123",
      "livemode": false,
      "metadata": {},
      "period": {
        "start": 1533204620,
        "end": 1533204620
      },
      "plan": null,
      "proration": false,
      "quantity": null,
      "subscription": null
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "invoiceitem.created"
}
)"};
}

struct Example {
  SignatureScheme scheme;
  std::string secret;
  Request request;
  std::string signature_header;
};

std::vector<Example> Examples() {
  return {{SignatureScheme::kStandard, kStandardSecret, StandardExample(), "webhook-signature"},
          {SignatureScheme::kGithub, kGithubSecret, GithubExample(), "x-hub-signature-256"},
          {SignatureScheme::kStripe, kStripeSecret, StripeExample(), "stripe-signature"}};
}

std::optional<SignedMessage> Accepted(const Example& example,
                                      const std::vector<std::string>& secrets) {
  std::vector<std::string> keys;
  for (const auto& secret : secrets) keys.push_back(SigningKey(example.scheme, secret));
  const auto verified = VerifySignature(example.scheme, keys, example.request);
  const auto* message = std::get_if<SignedMessage>(&verified);
  return message == nullptr ? std::nullopt : std::optional(*message);
}

std::optional<SignatureFault> FaultOf(const Example& example) {
  const auto verified = VerifySignature(
      example.scheme, {SigningKey(example.scheme, example.secret)}, example.request);
  const auto* fault = std::get_if<SignatureFault>(&verified);
  return fault == nullptr ? std::nullopt : std::optional(*fault);
}

TEST(Signature, ThePublishedExampleOfEverySchemeIsAccepted) {
  const auto examples = Examples();
  const auto standard = Accepted(examples[0], {kStandardSecret});
  ASSERT_TRUE(standard);
  EXPECT_EQ(standard->id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
  EXPECT_EQ(standard->signed_at, sys_seconds(seconds(1614265330)));
  const auto github = Accepted(examples[1], {kGithubSecret});
  ASSERT_TRUE(github);
  EXPECT_EQ(github->signed_at, std::nullopt);
  const auto stripe = Accepted(examples[2], {kStripeSecret});
  ASSERT_TRUE(stripe);
  EXPECT_EQ(stripe->signed_at, sys_seconds(seconds(1533204620)));
}

TEST(Signature, WhatIsSentOutIsThePublishedExample) {
  const auto example = StandardExample();
  const auto headers =
      SignStandard({SigningKey(SignatureScheme::kStandard, kStandardSecret)},
                   "msg_p5jXN8AQM9LWM0D4loKWxJek", sys_seconds(seconds(1614265330)), example.body);
  EXPECT_EQ((std::map<std::string, std::string>(headers.begin(), headers.end())), example.headers);
}

TEST(Signature, AnyOfSeveralSecretsAndAnyOfSeveralSignaturesWillDo) {
  for (auto& example : Examples()) {
    EXPECT_TRUE(Accepted(example, {"an older one", example.secret})) << example.signature_header;
    EXPECT_TRUE(Accepted(example, {example.secret, "a newer one"})) << example.signature_header;
    EXPECT_FALSE(Accepted(example, {"an older one", "a newer one"})) << example.signature_header;
  }
  auto standard = Examples()[0];
  standard.request.headers["webhook-signature"] =
      "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/"
      "enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== "
      "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= "
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  EXPECT_TRUE(Accepted(standard, {standard.secret}));
  auto stripe = Examples()[2];
  auto& header = stripe.request.headers["stripe-signature"];
  header.insert(header.find(",v1="), ",v1=" + std::string(64, '0'));
  EXPECT_TRUE(Accepted(stripe, {stripe.secret}));
  const auto made = SignStandard({"one", "two"}, "id", sys_seconds(seconds(1)), "{}");
  for (const char* key : {"one", "two"}) {
    const Request request{
        .method = "", .path = "", .query = {}, .headers = {made.begin(), made.end()}, .body = "{}"};
    EXPECT_TRUE(std::holds_alternative<SignedMessage>(
        VerifySignature(SignatureScheme::kStandard, {key}, request)));
  }
}

TEST(Signature, AnyOtherByteOfTheMessageIsRefused) {
  for (const auto& example : Examples()) {
    for (size_t at = 0; at < example.request.body.size(); ++at) {
      auto changed = example;
      changed.request.body[at] ^= 1;
      EXPECT_EQ(FaultOf(changed), SignatureFault::kWrong) << example.signature_header << " " << at;
    }
    auto longer = example;
    longer.request.body += '\n';
    EXPECT_EQ(FaultOf(longer), SignatureFault::kWrong);
    auto shorter = example;
    shorter.request.body.pop_back();
    EXPECT_EQ(FaultOf(shorter), SignatureFault::kWrong);
  }
  auto renamed = Examples()[0];
  renamed.request.headers["webhook-id"] = "msg_another";
  EXPECT_EQ(FaultOf(renamed), SignatureFault::kWrong);
  auto later = Examples()[0];
  later.request.headers["webhook-timestamp"] = "1614265331";
  EXPECT_EQ(FaultOf(later), SignatureFault::kWrong);
}

TEST(Signature, EverySingleChangeOfASignatureIsRefused) {
  for (const auto& example : Examples()) {
    const auto signature = example.request.headers.at(example.signature_header);
    // Stripe's obsolete v0 may say what it likes.
    const auto end =
        example.scheme == SignatureScheme::kStripe ? signature.find(",v0=") : signature.size();
    for (size_t at = 0; at < end; ++at) {
      auto changed = example;
      changed.request.headers[example.signature_header][at] ^= 1;
      EXPECT_TRUE(FaultOf(changed)) << example.signature_header << " " << at;
      changed.request.headers[example.signature_header] = signature.substr(0, at);
      EXPECT_TRUE(FaultOf(changed)) << example.signature_header << " cut at " << at;
    }
  }
}

TEST(Signature, WithoutAHeaderOfItsSchemeItIsMissing) {
  for (const auto& example : Examples()) {
    for (const auto& [name, value] : example.request.headers) {
      if (name == "x-github-delivery") continue;
      auto without = example;
      without.request.headers.erase(name);
      EXPECT_EQ(FaultOf(without), SignatureFault::kMissing) << name;
    }
  }
}

TEST(Signature, OneSchemesHeadersDoNotServeAnother) {
  const auto examples = Examples();
  for (const auto& example : examples) {
    for (const auto& other : examples) {
      if (other.scheme == example.scheme) continue;
      auto mixed = example;
      mixed.scheme = other.scheme;
      EXPECT_EQ(FaultOf(mixed), SignatureFault::kMissing);
    }
  }
}

TEST(Signature, GarbledHeadersAreRefused) {
  const std::string good = StandardExample().headers.at("webhook-signature");
  const std::pair<const char*, std::string> garbled[] = {
      {"webhook-timestamp", ""},
      {"webhook-timestamp", "-1614265330"},
      {"webhook-timestamp", "1614265330 "},
      {"webhook-timestamp", "1614265330, 1614265330"},
      {"webhook-timestamp", "9999999999999999999999"},
      {"webhook-timestamp", "0x60381c72"},
      {"webhook-id", ""},
      {"webhook-id", "msg.1"},
      {"webhook-id", "msg 1"},
      {"webhook-id", "msg\n1"},
      {"webhook-id", std::string(257, 'x')},
      {"webhook-id", std::string("msg\0x", 5)},
      {"webhook-id", "msg_\xc3\xa9"},
      {"webhook-signature", ""},
      {"webhook-signature", "v1"},
      {"webhook-signature", "v2" + good.substr(2)},
      {"webhook-signature",
       [&] {
         std::string many;
         for (int i = 0; i < 17; ++i) many += good + " ";
         return many;
       }()},
  };
  for (const auto& [name, value] : garbled) {
    auto example = Examples()[0];
    example.request.headers[name] = value;
    EXPECT_EQ(FaultOf(example), SignatureFault::kMalformed) << name << ": " << value;
  }
  for (const char* header :
       {"", "t=1533204620", "v1=00", "t=,v1=00", "t=x,v1=00", "t=1533204620,t=1533204620,v1=00"}) {
    auto example = Examples()[2];
    example.request.headers["stripe-signature"] = header;
    EXPECT_EQ(FaultOf(example), SignatureFault::kMalformed) << header;
  }
  auto sha1 = Examples()[1];
  sha1.request.headers["x-hub-signature-256"] = "sha1=2aae6c35c94fcfb415dbe95f408b9ce91ee846ed";
  EXPECT_EQ(FaultOf(sha1), SignatureFault::kMalformed);
}

// What an attacker may change without the secret must not make an old message a new one.
TEST(Signature, TheIdDependsOnlyOnWhatIsSigned) {
  auto github = Examples()[1];
  const auto id = Accepted(github, {github.secret})->id;
  github.request.headers["x-github-delivery"] = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(Accepted(github, {github.secret})->id, id);
  auto stripe = Examples()[2];
  const auto stripe_id = Accepted(stripe, {stripe.secret})->id;
  auto& header = stripe.request.headers["stripe-signature"];
  header = header.substr(0, header.find(",v0="));
  EXPECT_EQ(Accepted(stripe, {stripe.secret})->id, stripe_id);
  EXPECT_NE(stripe_id, id);
}

TEST(Signature, AMessageIsWithinItsWindowOnBothSidesAndNoFurther) {
  const sys_seconds now(seconds(1'700'000'000));
  const auto within = [&](int64_t offset) {
    return IsWithin({.id = "x", .signed_at = now + seconds(offset)}, now, seconds(300));
  };
  EXPECT_TRUE(within(0));
  EXPECT_TRUE(within(-300));
  EXPECT_TRUE(within(300));
  EXPECT_FALSE(within(-301));
  EXPECT_FALSE(within(301));
  EXPECT_FALSE(
      IsWithin({.id = "x", .signed_at = sys_seconds(seconds(999'999'999'999))}, now, seconds(300)));
  EXPECT_TRUE(IsWithin({.id = "x", .signed_at = {}}, now, seconds(300)));
}

TEST(Signature, ASecretThatCannotBeOneIsRefusedWithoutBeingShown) {
  EXPECT_EQ(SigningKey(SignatureScheme::kStandard, "plain secret"), "plain secret");
  EXPECT_EQ(SigningKey(SignatureScheme::kStandard, "whsec_Zm9v"), "foo");
  EXPECT_EQ(SigningKey(SignatureScheme::kStripe, "whsec_Zm9v"), "whsec_Zm9v");
  for (const char* secret : {"", "whsec_", "whsec_no base64!"}) {
    try {
      SigningKey(SignatureScheme::kStandard, secret);
      ADD_FAILURE() << "accepted \"" << secret << "\"";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kInvalidParameter);
      EXPECT_EQ(error.message().find("no base64!"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace tidemark::http
