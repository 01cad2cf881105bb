#include "source/postgres/inheritance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::source {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// 1 ◄─ 2 ◄─ 3, 1 ◄─ 4, and 5 inherits from 2 and from 4.
const std::vector<InheritedTable> kTables = {
    {2, 1, "two"}, {3, 2, "three"}, {4, 1, "four"}, {5, 2, "five"}, {5, 4, "five"}};

TEST(Families, LinksAreTheSourcesWhereAllIsMirrored) {
  const auto families = FamiliesOf(kTables, {1, 2, 3, 4, 5});
  EXPECT_THAT(families.links,
              ElementsAre(Pair(2, 1), Pair(3, 2), Pair(4, 1), Pair(5, 2), Pair(5, 4)));
  EXPECT_THAT(families.missing, IsEmpty());
}

TEST(Families, ATableBetweenThatIsNotMirroredIsNamedAndPassedThrough) {
  const auto families = FamiliesOf(kTables, {1, 3, 4, 5});
  EXPECT_THAT(families.links, ElementsAre(Pair(3, 1), Pair(4, 1), Pair(5, 1), Pair(5, 4)));
  EXPECT_THAT(families.missing, ElementsAre(Pair(1, ElementsAre("two"))));
}

TEST(Families, EveryAncestorLacksAnHeirThatIsNotMirrored) {
  const auto families = FamiliesOf(kTables, {1, 2, 4});
  EXPECT_THAT(families.links, ElementsAre(Pair(2, 1), Pair(4, 1)));
  EXPECT_THAT(families.missing,
              ElementsAre(Pair(1, ElementsAre("five", "three")), Pair(2, ElementsAre("five", "three")),
                          Pair(4, ElementsAre("five"))));
}

TEST(Families, OthersAreOfNoConcern) {
  const auto families = FamiliesOf(kTables, {3, 9});
  EXPECT_THAT(families.links, IsEmpty());
  EXPECT_THAT(families.missing, IsEmpty());
}

}  // namespace
}  // namespace tidemark::source
