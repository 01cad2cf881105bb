// The messages are as PostgreSQL 15 sent them after START_REPLICATION.
#include "wire/replication.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "wire/hex_literal.h"

namespace tidemark::wire {
namespace {

using base::Lsn;
using base::Timestamp;

const std::string kCommit =
    "77 0000000001556ff8 0000000001556ff8 0003046c91e442d5"
    "43 00 0000000001556fc8 0000000001556ff8 0003046c8d9563cd"_hex;
const std::string kTypeAheadOfAChange =
    "77 0000000000000000 0000000000000000 0003046c91e4426e 59000040017075626c6963006d6f6f6400"_hex;
const std::string kKeepalive = "6b 0000000001aace30 0003046c91e46765 00"_hex;

TEST(Replication, XLogDataLendsItsPayload) {
  const auto data = std::get<XLogData>(ReadReplicationMessage(kCommit));
  EXPECT_EQ(data.start, Lsn::Parse("0/1556FF8"));
  EXPECT_EQ(data.wal_end, Lsn::Parse("0/1556FF8"));
  EXPECT_EQ(data.sent_at, Timestamp(0x0003046c91e442d5));
  EXPECT_EQ(data.payload.size(), 26);
  EXPECT_EQ(data.payload.data(), kCommit.data() + 25);
}

TEST(Replication, MessagesAheadOfAChangeHaveNoPosition) {
  const auto data = std::get<XLogData>(ReadReplicationMessage(kTypeAheadOfAChange));
  EXPECT_FALSE(data.start.valid());
  EXPECT_EQ(data.payload.front(), 'Y');
}

TEST(Replication, KeepaliveSaysWhetherAReplyIsWanted) {
  auto keepalive = std::get<PrimaryKeepalive>(ReadReplicationMessage(kKeepalive));
  EXPECT_EQ(keepalive.wal_end, Lsn::Parse("0/1AACE30"));
  EXPECT_EQ(keepalive.sent_at, Timestamp(0x0003046c91e46765));
  EXPECT_FALSE(keepalive.reply_requested);

  std::string urgent = kKeepalive;
  urgent.back() = 1;
  EXPECT_TRUE(std::get<PrimaryKeepalive>(ReadReplicationMessage(urgent)).reply_requested);
}

TEST(Replication, StatusUpdateHasTheServersLayout) {
  std::string out = "before";
  WriteStandbyStatusUpdate({.written = Lsn(3),
                            .flushed = Lsn(2),
                            .applied = Lsn(1),
                            .sent_at = Timestamp(0x0003046c91e442d5),
                            .reply_requested = true},
                           out);
  EXPECT_EQ(
      out,
      "before" + "72 0000000000000003 0000000000000002 0000000000000001 0003046c91e442d5 01"_hex);
}

TEST(Replication, TruncatedAtAnyByteOfItsHeaderThrows) {
  const auto expect_violation = [](std::string_view bytes) {
    try {
      ReadReplicationMessage(bytes);
      FAIL() << bytes.size();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kProtocolViolation);
    }
  };
  for (size_t size = 0; size < 25; ++size) expect_violation(kCommit.substr(0, size));
  for (size_t size = 0; size < 18; ++size) expect_violation(kKeepalive.substr(0, size));
  expect_violation(kKeepalive + "x");
}

TEST(Replication, UnknownMessageIsNamed) {
  try {
    ReadReplicationMessage("zebra");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kProtocolViolation);
    EXPECT_EQ(error.message(), "unknown copy-both message 0x7a");
  }
}

}  // namespace
}  // namespace tidemark::wire
