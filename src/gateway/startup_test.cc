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
    Startup startup;
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
    Startup startup;
    startup.OnBytes(bytes);
    EXPECT_EQ(startup.request(), Startup::Request::kCancel);
    EXPECT_EQ(startup.packet(), bytes);
  }
}

base::SqlState Refusal(std::string_view bytes) {
  try {
    Startup startup;
    startup.OnBytes(bytes);
  } catch (const base::Error& error) {
    return error.state();
  }
  return base::SqlState("00000");
}

TEST(Startup, RefusesReplicationSessions) {
  for (const std::string_view value : {"true", "database", "on", "1", "yes"}) {
    std::string bytes;
    wire::WriteStartup(bytes, {{"user", "ada"}, {"replication", value}});
    EXPECT_EQ(Refusal(bytes), base::kFeatureNotSupported) << value;
  }
  std::string bytes;
  wire::WriteStartup(bytes, {{"user", "ada"}, {"replication", "false"}});
  EXPECT_EQ(Refusal(bytes), base::SqlState("00000"));
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
