#include "gateway/startup.h"

#include <gtest/gtest.h>

#include "wire/message.h"

namespace tidemark::gateway {
namespace {

TEST(Startup, AnswersEncryptionRequestsAndThenTakesTheStartup) {
  std::string start;
  wire::WriteStartup(start, {{"user", "ada"}}, 2);
  std::string bytes;
  wire::WriteGssEncryptionRequest(bytes);
  wire::WriteTlsRequest(bytes);
  bytes += start + "rest";
  for (size_t split = 0; split <= bytes.size(); ++split) {
    Startup startup({});
    std::string answers = startup.OnBytes(std::string_view(bytes).substr(0, split));
    answers += startup.OnBytes(std::string_view(bytes).substr(split));
    EXPECT_EQ(answers, "NN");
    ASSERT_EQ(startup.request(), Startup::Request::kSession);
    EXPECT_EQ(startup.packet(), start);
    EXPECT_EQ(startup.rest(), "rest");
  }
}

TEST(Startup, TakesCancelRequestsWithKeysOfAnyLength) {
  for (const size_t key_bytes : {4, 32, 256}) {
    std::string bytes;
    wire::WriteCancelRequest(bytes, 17, std::string(key_bytes, 'k'));
    Startup startup({});
    startup.OnBytes(bytes);
    EXPECT_EQ(startup.request(), Startup::Request::kCancel);
    EXPECT_EQ(startup.packet(), bytes);
  }
}

base::SqlState Refusal(std::string_view bytes, const Startup::Rules& rules = {}) {
  try {
    Startup startup(rules);
    startup.OnBytes(bytes);
  } catch (const base::Error& error) {
    return error.state();
  }
  return base::SqlState("00000");
}

TEST(Startup, RefusesReplicationSessions) {
  for (const std::string_view value : {"true", "TRUE", "t", "database", "on", "1", "yes", "y"}) {
    std::string bytes;
    wire::WriteStartup(bytes, {{"user", "ada"}, {"replication", value}});
    EXPECT_EQ(Refusal(bytes), base::kFeatureNotSupported) << value;
  }
  for (const std::string_view value : {"false", "off", "0", "no", "n", "False", "OFF"}) {
    std::string bytes;
    wire::WriteStartup(bytes, {{"user", "ada"}, {"replication", value}});
    EXPECT_EQ(Refusal(bytes), base::SqlState("00000")) << value;
  }
}

TEST(Startup, GoesIntoTlsAndTakesTheStartupThere) {
  std::string request, start;
  wire::WriteGssEncryptionRequest(request);
  wire::WriteTlsRequest(request);
  wire::WriteStartup(start, {{"user", "ada"}});
  Startup startup({.offers_tls = true, .requires_tls = true});
  EXPECT_EQ(startup.OnBytes(request), "NS");
  ASSERT_EQ(startup.request(), Startup::Request::kTls);
  EXPECT_FALSE(startup.direct_tls());
  EXPECT_EQ(startup.rest(), "");
  startup.OnTls();
  EXPECT_EQ(startup.OnBytes(start), "");
  EXPECT_EQ(startup.request(), Startup::Request::kSession);
  EXPECT_EQ(startup.packet(), start);
}

TEST(Startup, DirectTlsBeginsWithoutAnAnswer) {
  Startup startup({.offers_tls = true});
  EXPECT_EQ(startup.OnBytes("\x16\3\1hello"), "");
  ASSERT_EQ(startup.request(), Startup::Request::kTls);
  EXPECT_TRUE(startup.direct_tls());
  EXPECT_EQ(startup.rest(), "\x16\3\1hello");
  EXPECT_EQ(Refusal("\x16\3\1hello"), base::kProtocolViolation);
}

TEST(Startup, RefusesBytesStuffedBeforeTheHandshake) {
  std::string request, start;
  wire::WriteTlsRequest(request);
  wire::WriteStartup(start, {{"user", "ada"}});
  const Startup::Rules rules{.offers_tls = true};
  EXPECT_EQ(Refusal(request + start, rules), base::kProtocolViolation);
  EXPECT_EQ(Refusal(request + "Q", rules), base::kProtocolViolation);
}

TEST(Startup, RefusesEncryptionWithinEncryption) {
  std::string request;
  wire::WriteTlsRequest(request);
  Startup startup({.offers_tls = true});
  startup.OnBytes(request);
  startup.OnTls();
  EXPECT_THROW(startup.OnBytes(request), base::Error);
}

TEST(Startup, UnencryptedSessionsAreRefusedWhereTlsIsRequiredCancelsAreNot) {
  std::string start, cancel;
  wire::WriteStartup(start, {{"user", "ada"}});
  wire::WriteCancelRequest(cancel, 17, "key.");
  const Startup::Rules rules{.offers_tls = true, .requires_tls = true};
  EXPECT_EQ(Refusal(start, rules), base::kInvalidAuthorization);
  EXPECT_EQ(Refusal(cancel, rules), base::SqlState("00000"));
}

TEST(Startup, PacketsOverTheLimitAreRefusedBeforeTheyAreWhole) {
  std::string start;
  wire::WriteStartup(start, {{"user", "ada"}, {"application_name", std::string(200, 'a')}});
  EXPECT_EQ(Refusal(start.substr(0, 4), {.bytes_max = 200}), base::kProtocolViolation);
  EXPECT_EQ(Refusal(start, {.bytes_max = 300}), base::SqlState("00000"));
}

TEST(Startup, RefusesMalformedPackets) {
  EXPECT_EQ(Refusal(std::string_view("\0\0\0\3", 4)), base::kProtocolViolation);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\n"), base::kProtocolViolation);
  EXPECT_EQ(Refusal(std::string_view("\0\0\0\x0b\0\3\0\0abc", 11)), base::kProtocolViolation);
  std::string twice;
  wire::WriteTlsRequest(twice);
  wire::WriteTlsRequest(twice);
  EXPECT_EQ(Refusal(twice), base::kProtocolViolation);
}

}  // namespace
}  // namespace tidemark::gateway
