#include "source/postgres/table_state.h"

#include <gtest/gtest.h>

namespace tidemark::source {
namespace {

bool Includes(const std::string& snapshot, uint32_t xid) {
  return SeenColumns{.snapshot = snapshot, .columns = {}, .published = {}}.Includes(xid);
}

TEST(SeenColumns, IncludeWhatHadEnded) {
  EXPECT_TRUE(Includes("740:745:740,743", 739));
  EXPECT_FALSE(Includes("740:745:740,743", 740));
  EXPECT_TRUE(Includes("740:745:740,743", 741));
  EXPECT_FALSE(Includes("740:745:740,743", 743));
  EXPECT_TRUE(Includes("740:745:740,743", 744));
  EXPECT_FALSE(Includes("740:745:740,743", 745));
  EXPECT_TRUE(Includes("740:740:", 739));
  EXPECT_FALSE(Includes("740:740:", 740));
}

TEST(SeenColumns, KnowTransactionsOfOtherEpochs) {
  // 2^32 * 3 + 10, and transactions from before the counter began again.
  EXPECT_TRUE(Includes("12884901898:12884901898:", 4294967290U));
  EXPECT_TRUE(Includes("12884901898:12884901898:", 9));
  EXPECT_FALSE(Includes("12884901898:12884901898:", 10));
  EXPECT_FALSE(Includes("12884901880:12884901898:12884901885", 4294967293U));
  EXPECT_TRUE(Includes("12884901880:12884901898:12884901885", 4294967294U));
  // Just before it begins again.
  EXPECT_FALSE(Includes("12884901886:12884901886:", 3));
}

}  // namespace
}  // namespace tidemark::source
