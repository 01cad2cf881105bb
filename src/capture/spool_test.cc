#include "capture/spool.h"

#include <gtest/gtest.h>

namespace tidemark::capture {
namespace {

TEST(Spool, GivesBackWhatWasWrittenInOrder) {
  Spool spool;
  const std::string large(1 << 20, 'x');
  spool.Write({base::Lsn(7), 1, "first"});
  spool.Write({base::Lsn(8), 2, ""});
  spool.Write({base::Lsn(9), 3, large});
  const auto first = spool.Read();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->commit_lsn, base::Lsn(7));
  EXPECT_EQ(first->xid, 1u);
  EXPECT_EQ(first->payload, "first");
  EXPECT_EQ(spool.Read()->payload, "");
  EXPECT_EQ(spool.Read()->payload, large);
  EXPECT_FALSE(spool.Read());
}

TEST(Spool, SpillsWhatIsMoreThanItKeeps) {
  for (const int messages : {1, 10, 1000}) {
    Spool spool(/*memory_max=*/100);
    for (int i = 0; i < messages; ++i) {
      spool.Write({base::Lsn(i), static_cast<uint32_t>(i), std::to_string(i)});
    }
    EXPECT_EQ(spool.spilled(), messages > 1);
    for (int i = 0; i < messages; ++i) {
      const auto read = spool.Read();
      ASSERT_TRUE(read);
      EXPECT_EQ(read->xid, static_cast<uint32_t>(i));
      EXPECT_EQ(read->payload, std::to_string(i));
    }
    EXPECT_FALSE(spool.Read());
    EXPECT_FALSE(spool.Read());
  }
}

TEST(Spool, EmptyHasNothing) {
  Spool spool;
  EXPECT_FALSE(spool.Read());
  EXPECT_EQ(spool.bytes(), 0);
}

}  // namespace
}  // namespace tidemark::capture
