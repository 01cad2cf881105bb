#include "temporal/sieve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"

namespace tidemark::temporal {
namespace {

// Digests that collide in the table's lowest bits are what its probing is for.
RowDigest Digest(uint64_t number) {
  return {number * 0x9e3779b97f4a7c15ULL, (number % 7) << 60 | number};
}

std::string Row(uint64_t number) { return "row " + std::to_string(number) + ";"; }

TEST(DigestTable, HoldsExactlyWhatWasPutAndNotTaken) {
  std::minstd_rand random(1);
  DigestTable table;
  std::map<uint64_t, uint64_t> model;
  for (int step = 0; step < 200'000; ++step) {
    // Few different low bits, so that many share a home.
    const uint64_t key = random() % 3000;
    const RowDigest digest{key, key % 50};
    if (random() % 2 == 0) {
      EXPECT_EQ(table.Put(digest, key + 1), model.emplace(key, key + 1).second);
    } else {
      const auto found = model.find(key);
      EXPECT_EQ(table.Take(digest), found == model.end() ? DigestTable::kNone : found->second);
      if (found != model.end()) model.erase(found);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  table.RemoveIf([](uint64_t value) { return value % 3 == 0; });
  std::erase_if(model, [](const auto& entry) { return entry.second % 3 == 0; });
  for (uint64_t key = 0; key < 3000; ++key) {
    const auto found = model.find(key);
    EXPECT_EQ(table.Find({key, key % 50}),
              found == model.end() ? DigestTable::kNone : found->second);
  }
  std::set<uint64_t> visited;
  table.ForEach([&](uint64_t value) { EXPECT_TRUE(visited.insert(value).second); });
  EXPECT_EQ(visited.size(), model.size());
}

TEST(Sieve, EqualRowsCancelEachOtherOutInWhateverOrderTheyCome) {
  std::minstd_rand random(2);
  constexpr uint64_t kRows = 5000;
  std::vector<uint64_t> current(kRows), incoming(kRows);
  for (uint64_t i = 0; i < kRows; ++i) {
    current[i] = i;
    incoming[i] = i % 10 == 0 ? i + kRows : i;  // one in ten is another row
  }
  std::shuffle(incoming.begin(), incoming.end(), random);
  Sieve sieve(kRows);
  std::string released;
  for (uint64_t i = 0; i < kRows; ++i) {
    sieve.GiveCurrent(Digest(current[i]), PlaceOf(static_cast<uint32_t>(i), 1));
    sieve.GiveIncoming(Digest(incoming[i]), Row(incoming[i]), released);
  }
  EXPECT_EQ(released, "");
  EXPECT_EQ(sieve.met(), static_cast<int64_t>(kRows - kRows / 10));
  EXPECT_EQ(sieve.incoming_waiting(), kRows / 10);
  while (sieve.incoming_waiting() > 0) sieve.Release(released);
  EXPECT_EQ(sieve.incoming_bytes(), 0u);
  for (uint64_t i = 0; i < kRows; i += 10) {
    EXPECT_NE(released.find(Row(i + kRows)), std::string::npos) << i;
  }
  EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(released, ';')), kRows / 10);
  auto unmet = sieve.TakeUnmet();
  std::ranges::sort(unmet);
  ASSERT_EQ(unmet.size(), kRows / 10);
  for (uint64_t i = 0; i < unmet.size(); ++i) EXPECT_EQ(BlockOf(unmet[i]), i * 10);
}

TEST(Sieve, WhatHadToLeaveIsNotMetAnyMoreAndLosesNoRow) {
  constexpr uint64_t kRows = 1000, kMost = 100;
  Sieve sieve(kMost);
  for (uint64_t i = 0; i < kRows; ++i) {
    sieve.GiveCurrent(Digest(i), PlaceOf(static_cast<uint32_t>(i), 1));
    EXPECT_LE(sieve.current_waiting(), kMost);
  }
  // The oldest went first.
  std::set<uint64_t> unmet;
  for (const RowPlace place : sieve.unmet()) unmet.insert(BlockOf(place));
  EXPECT_EQ(unmet.size() + sieve.current_waiting(), kRows);
  EXPECT_EQ(*unmet.rbegin(), unmet.size() - 1);
  std::string released;
  for (uint64_t i = 0; i < kRows; ++i) sieve.GiveIncoming(Digest(i), Row(i), released);
  EXPECT_EQ(sieve.met(), static_cast<int64_t>(kRows - unmet.size()));
  while (sieve.incoming_waiting() > 0) sieve.Release(released);
  EXPECT_EQ(static_cast<uint64_t>(std::ranges::count(released, ';')), unmet.size());
  EXPECT_EQ(sieve.TakeUnmet().size(), unmet.size());
}

TEST(Sieve, IncomingRowsAreReleasedInTheOrderInWhichTheyCame) {
  Sieve sieve(10);
  std::string released, all;
  const std::string padding(1000, '.');
  for (uint64_t i = 0; i < 2000; ++i) {
    sieve.GiveIncoming(Digest(i), Row(i) + padding, released);
    if (i % 3 != 0) all += Row(i) + padding;
  }
  for (uint64_t i = 0; i < 2000; i += 3) sieve.GiveCurrent(Digest(i), PlaceOf(1, 1));
  EXPECT_EQ(sieve.met(), 667);
  const size_t bytes = sieve.incoming_bytes();
  sieve.Release(released);
  EXPECT_FALSE(released.empty());
  EXPECT_LT(released.size(), all.size());
  EXPECT_LT(sieve.incoming_bytes(), bytes);
  while (sieve.incoming_waiting() > 0) sieve.Release(released);
  EXPECT_EQ(released, all);
}

TEST(Sieve, OfEqualIncomingRowsOneIsMetAndTheOthersAreReleased) {
  Sieve sieve(10);
  std::string released;
  for (int i = 0; i < 3; ++i) sieve.GiveIncoming(Digest(5), Row(5), released);
  EXPECT_EQ(released, Row(5) + Row(5));
  sieve.GiveCurrent(Digest(5), PlaceOf(1, 1));
  EXPECT_EQ(sieve.met(), 1);
  EXPECT_EQ(sieve.incoming_waiting(), 0u);
  sieve.GiveIncoming(Digest(5), Row(5), released);
  sieve.Release(released);
  EXPECT_EQ(released, Row(5) + Row(5) + Row(5));
  EXPECT_TRUE(sieve.TakeUnmet().empty());
}

TEST(RowDigester, TheSameRowHasTheSameDigestWithinOneDigesterOnly) {
  const RowDigester one, other;
  const std::string row("\0\0\0\1a\xff\xff\xff\xff", 9);
  EXPECT_EQ(one.Of(row), one.Of(std::string(row)));
  EXPECT_NE(one.Of(row), other.Of(row));
  for (size_t i = 0; i < row.size(); ++i) {
    std::string changed = row;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_NE(one.Of(row), one.Of(changed)) << i;
  }
}

}  // namespace
}  // namespace tidemark::temporal
