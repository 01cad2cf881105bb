#include "capture/streamed_transactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace tidemark::capture {
namespace {

// A message of a block: its kind, the subtransaction, and the rest.
std::string Message(char kind, uint32_t xid, const std::string& rest) {
  std::string bytes(1, kind);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(xid >> shift);
  return bytes + rest;
}

// "payload", or "-payload" for one that was rolled back.
std::vector<std::string> Read(StreamedTransactions& streamed, uint32_t xid) {
  std::vector<std::string> changes;
  const auto committed = streamed.Commit(xid);
  while (const auto change = committed->Next()) {
    changes.push_back((change->rolled_back ? "-" : "") + std::string(change->payload));
  }
  return changes;
}

using testing::ElementsAre;

TEST(StreamedTransactions, BlocksOfSeveralAreReadByTransactionInOrderWithoutTheirXid) {
  StreamedTransactions streamed;
  EXPECT_FALSE(streamed.Take("Bno block"));
  streamed.Start(7);
  EXPECT_TRUE(streamed.Take(Message('R', 7, "t")));
  EXPECT_TRUE(streamed.Take(Message('I', 7, "a")));
  EXPECT_FALSE(streamed.Take("E"));
  streamed.Stop();
  streamed.Start(9);
  EXPECT_TRUE(streamed.Take(Message('I', 9, "x")));
  streamed.Stop();
  streamed.Start(7);
  EXPECT_TRUE(streamed.Take("Oorigin"));
  EXPECT_TRUE(streamed.Take(Message('I', 8, "b")));
  streamed.Stop();
  EXPECT_EQ(streamed.running(), 2U);
  EXPECT_THAT(Read(streamed, 9), ElementsAre("Ix"));
  EXPECT_THAT(Read(streamed, 7), ElementsAre("Rt", "Ia", "Oorigin", "Ib"));
  EXPECT_EQ(streamed.running(), 0U);
  EXPECT_THAT(Read(streamed, 7), ElementsAre());
}

TEST(StreamedTransactions, WhatWasRolledBackIsMarkedOrGone) {
  StreamedTransactions streamed;
  streamed.Start(7);
  streamed.Take(Message('I', 7, "a"));
  streamed.Take(Message('I', 8, "b"));
  streamed.Take(Message('I', 9, "c"));
  streamed.Stop();
  streamed.Abort(7, 8);
  streamed.Abort(5, 6);  // never heard of
  streamed.Abort(5, 5);
  streamed.Start(10);
  streamed.Take(Message('I', 10, "z"));
  streamed.Stop();
  streamed.Abort(10, 10);
  EXPECT_EQ(streamed.running(), 1U);
  EXPECT_THAT(Read(streamed, 7), ElementsAre("Ia", "-Ib", "Ic"));
}

TEST(StreamedTransactions, AMessageWithoutItsXidIsRefused) {
  StreamedTransactions streamed;
  streamed.Start(7);
  EXPECT_THROW(streamed.Take("Iab"), base::Error);
  EXPECT_THROW(streamed.Take(""), base::Error);
}

}  // namespace
}  // namespace tidemark::capture
