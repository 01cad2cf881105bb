#include "source/postgres/log_place.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::source {
namespace {

TEST(LeftAt, IsWhereTheAncestorEnded) {
  const std::string history =
      "1\t0/3000158\tno recovery target specified\n"
      "# a comment\n\n"
      "3\t1A/80000000\tbefore 2026-11-30 12:00:00+00\n";
  EXPECT_EQ(LeftAt(history, 1), base::Lsn::Parse("0/3000158"));
  EXPECT_EQ(LeftAt(history, 3), base::Lsn::Parse("1A/80000000"));
  EXPECT_EQ(LeftAt(history, 2), std::nullopt);
  EXPECT_EQ(LeftAt("", 1), std::nullopt);
}

TEST(LeftAt, RefusesWhatIsNoHistory) {
  EXPECT_THROW(LeftAt("nonsense\n", 1), base::Error);
  EXPECT_THROW(LeftAt("1\n", 2), base::Error);
  EXPECT_THROW(LeftAt("1\tnowhere\treason\n", 1), base::Error);
}

}  // namespace
}  // namespace tidemark::source
