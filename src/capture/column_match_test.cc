#include "capture/column_match.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::capture {
namespace {

using Numbers = std::vector<int>;
constexpr uint32_t kInt = 23, kText = 25;

const std::vector<KnownColumn> kKnown = {{1, "id", kInt}, {2, "x", kInt}, {3, "y", kInt}};

TEST(ColumnMatch, SwappedNamesStayWithTheirColumns) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"y", kInt}, {"x", kInt}}, kKnown,
                         {{1, "id", kInt}, {2, "y", kInt}, {3, "x", kInt}}),
            (Numbers{1, 2, 3}));
}

TEST(ColumnMatch, ColumnDroppedAndAddedAgainIsANewOne) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"y", kInt}, {"x", kInt}}, kKnown,
                         {{1, "id", kInt}, {2, "", 0}, {3, "y", kInt}, {4, "x", kInt}}),
            (Numbers{1, 3, 4}));
}

TEST(ColumnMatch, MessageFromBeforeADropHasTheDroppedColumn) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"x", kInt}, {"y", kInt}}, kKnown,
                         {{1, "id", kInt}, {2, "", 0}, {3, "y", kInt}, {4, "x", kInt}}),
            (Numbers{1, 2, 3}));
}

TEST(ColumnMatch, ColumnRenamedAgainSinceTheMessageIsStillItself) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"between", kInt}, {"y", kInt}}, kKnown,
                         {{1, "id", kInt}, {2, "after", kInt}, {3, "y", kInt}}),
            (Numbers{1, 2, 3}));
}

TEST(ColumnMatch, RetypedColumnKeepsItsNumber) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"x", kText}, {"y", kInt}}, kKnown,
                         {{1, "id", kInt}, {2, "x", kText}, {3, "y", kInt}}),
            (Numbers{1, 2, 3}));
}

TEST(ColumnMatch, ColumnsAddedAfterTheMessageAreNotInIt) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"x", kInt}, {"y", kInt}, {"a", kText}}, kKnown,
                         {{1, "id", kInt}, {2, "x", kInt}, {3, "y", kInt}, {4, "a", kText},
                          {5, "b", kText}}),
            (Numbers{1, 2, 3, 4}));
}

TEST(ColumnMatch, ColumnAddedAndDroppedAgainIsFoundByItsPlace) {
  EXPECT_EQ(MatchColumns({{"id", kInt}, {"x", kInt}, {"y", kInt}, {"gone", kText}}, kKnown,
                         {{1, "id", kInt}, {2, "x", kInt}, {3, "y", kInt}, {4, "", 0}}),
            (Numbers{1, 2, 3, 4}));
}

TEST(ColumnMatch, MessageWithoutAColumnThatIsStillThereIsRefused) {
  EXPECT_THROW(MatchColumns({{"id", kInt}, {"x", kInt}}, kKnown,
                            {{1, "id", kInt}, {2, "x", kInt}, {3, "y", kInt}}),
               base::Error);
}

}  // namespace
}  // namespace tidemark::capture
