#include "temporal/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>

namespace tidemark::temporal {
namespace {

constexpr MergeBounds kAny{.bytes_max = std::numeric_limits<int64_t>::max(), .span_us_max = {}};

// Partitions of these sizes, a second each, from number 1 on.
std::vector<MeasuredPartition> Sizes(const std::vector<int64_t>& sizes) {
  std::vector<MeasuredPartition> partitions;
  for (const auto bytes : sizes) {
    const auto before = static_cast<int64_t>(partitions.size());
    partitions.push_back({static_cast<int>(before) + 1, bytes, before * 1'000'000,
                          (before + 1) * 1'000'000});
  }
  return partitions;
}

using Chosen = std::optional<Neighbours>;

TEST(Neighbours, ClosedOnesAreSealedFourAtATimeOldestFirst) {
  EXPECT_EQ(ToSealTogether({}, true, kAny), std::nullopt);
  EXPECT_EQ(ToSealTogether(Sizes({7}), true, kAny), Chosen({1, 1}));
  EXPECT_EQ(ToSealTogether(Sizes({7, 900, 1}), true, kAny), Chosen({1, 3}));
  EXPECT_EQ(ToSealTogether(Sizes({7, 900, 1}), false, kAny), std::nullopt) << "waits for a fourth";
  EXPECT_EQ(ToSealTogether(Sizes({7, 7, 7, 7, 7, 7}), false, kAny), Chosen({1, 4}));
}

TEST(Neighbours, WhatIsTooLargeTogetherIsSealedWithFewerOrAlone) {
  const MergeBounds small{.bytes_max = 21, .span_us_max = {}};
  EXPECT_EQ(ToSealTogether(Sizes({7, 7, 7, 7}), true, small), Chosen({1, 3}));
  EXPECT_EQ(ToSealTogether(Sizes({70, 7}), true, small), Chosen({1, 1}));
  const MergeBounds two_seconds{.bytes_max = 100, .span_us_max = 2'000'000};
  EXPECT_EQ(ToSealTogether(Sizes({7, 7, 7}), true, two_seconds), Chosen({1, 2}));
}

TEST(Neighbours, SealedOnesOfAboutOneSizeAreMerged) {
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1}), kAny), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1, 1}), kAny), Chosen({1, 4}));
  EXPECT_EQ(ToMerge(Sizes({4, 3, 3, 2}), kAny), Chosen({1, 4}));
  EXPECT_EQ(ToMerge(Sizes({8, 1, 1, 1}), kAny), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({8, 1, 1, 1, 1}), kAny), Chosen({2, 5})) << "without the large one";
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1, 1, 8, 2, 2, 2, 2}), kAny), Chosen({6, 9})) << "the newest";
  EXPECT_EQ(ToMerge(Sizes({4, 1, 4, 1}), kAny), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({4, 1, 4, 1, 4}), kAny), Chosen({1, 5}));
  EXPECT_EQ(ToMerge(Sizes({9, 1, 1, 1, 9, 1, 1}), kAny), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({9, 1, 1, 1, 9, 1, 1, 1}), kAny), Chosen({1, 8}));
}

TEST(Neighbours, MergedOnesKeepToSizeAndSpan) {
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1, 1}), {.bytes_max = 3, .span_us_max = {}}), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1, 1}), {.bytes_max = 4, .span_us_max = 3'999'999}), std::nullopt);
  EXPECT_EQ(ToMerge(Sizes({1, 1, 1, 1}), {.bytes_max = 4, .span_us_max = 4'000'000}), Chosen({1, 4}));
  auto unknown = Sizes({1, 1, 1, 1});
  unknown.back().to_us.reset();
  EXPECT_EQ(ToMerge(unknown, {.bytes_max = 4, .span_us_max = 4'000'000}), std::nullopt);
  EXPECT_EQ(ToMerge(unknown, kAny), Chosen({1, 4}));
}

// 4,000 partitions, merged as they come: the most there were at once, and how often each byte was
// rewritten.
struct Lived {
  size_t most = 0;
  double rewritten = 0;
};
Lived Live(const std::function<int64_t(int)>& size_of) {
  Lived lived;
  std::vector<MeasuredPartition> sealed;
  int64_t total = 0, rewritten = 0;
  for (int i = 0; i < 4000; ++i) {
    sealed.push_back({i, size_of(i), {}, {}});
    total += sealed.back().bytes;
    while (const auto chosen = ToMerge(sealed, kAny)) {
      const auto first = std::ranges::find(sealed, chosen->first, &MeasuredPartition::number);
      const auto last = std::ranges::find(sealed, chosen->last, &MeasuredPartition::number);
      for (auto one = first; one != last; ++one) last->bytes += one->bytes;
      rewritten += last->bytes;
      sealed.erase(first, last);
    }
    lived.most = std::max(lived.most, sealed.size());
  }
  lived.rewritten = static_cast<double>(rewritten) / static_cast<double>(total);
  return lived;
}

TEST(Neighbours, FewAreLeftInWhateverSizesTheyCome) {
  std::mt19937 random(20);  // NOLINT(cert-msc51-cpp): the same each time
  std::uniform_int_distribution<int64_t> one_to_four(1, 4), wide(1, 1000);
  const std::map<std::string, std::function<int64_t(int)>> kinds = {
      {"equal", [](int) { return 1; }},
      {"one to four", [&](int) { return one_to_four(random); }},
      {"wide", [&](int) { return wide(random); }},
      {"by turns", [](int i) { return i % 2 == 0 ? 4 : 1; }},
      {"one large of four", [](int i) { return i % 4 == 0 ? 4 : 1; }},
      {"bursts", [](int i) { return i / 50 % 2 == 0 ? 1 : 4; }},
      {"growing", [](int i) { return 1 + i; }},
      {"shrinking", [](int i) { return 4001 - i; }},
  };
  for (const auto& [kind, size_of] : kinds) {
    const auto lived = Live(size_of);
    EXPECT_LE(lived.most, 16) << kind;
    EXPECT_LE(lived.rewritten, 8) << kind;
  }
}

}  // namespace
}  // namespace tidemark::temporal
