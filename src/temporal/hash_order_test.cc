#include "temporal/hash_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace tidemark::temporal {
namespace {

using base::Hash;
using base::View;

class HashOrderTest : public testing::TestWithParam<size_t> {};

TEST_P(HashOrderTest, GivesBackEveryHashInTheOrderOfItsBytes) {
  std::minstd_rand random(3);
  std::vector<std::string> model;
  HashOrder order(100);
  for (size_t i = 0; i < GetParam(); ++i) {
    Hash hash;
    // Few different beginnings, and bytes above 127.
    for (auto& byte : hash) byte = static_cast<char>(random() % 3 * 100);
    if (i % 10 == 9) std::copy_n(model.back().begin(), hash.size(), hash.begin());
    order.Add(hash);
    model.emplace_back(View(hash));
  }
  std::ranges::sort(model, [](const std::string& a, const std::string& b) { return a < b; });
  std::vector<std::string> read;
  order.Read([&](const Hash& hash) { read.emplace_back(View(hash)); });
  EXPECT_EQ(read, model);
}

INSTANTIATE_TEST_SUITE_P(InMemoryAndInRuns, HashOrderTest,
                         testing::Values(0, 1, 100, 101, 5000, 12'345));

}  // namespace
}  // namespace tidemark::temporal
