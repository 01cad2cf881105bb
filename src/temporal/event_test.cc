#include "temporal/event.h"

#include <gtest/gtest.h>

namespace tidemark::temporal {
namespace {

TEST(EventId, IsReadBackAsItIsWritten) {
  for (const EventId id : {EventId{0, 0}, EventId{1, 2}, EventId{INT64_MAX, INT32_MAX}}) {
    EXPECT_EQ(EventId::Parse(id.ToString()), id);
  }
  EXPECT_EQ((EventId{12, 7}).ToString(), "12-7");
}

TEST(EventId, AnythingElseIsNoId) {
  for (const char* text :
       {"", "-", "1", "1-", "-1", "1-2-3", "1--2", "+1-2", "-1-2", "01-2", "1-02", " 1-2", "1-2 ",
        "1-2x", "a-b", "9223372036854775808-1", "1-2147483648", "1\n-2"}) {
    EXPECT_EQ(EventId::Parse(text), std::nullopt) << text;
  }
}

TEST(EventId, OrdersByBasisThenDataset) {
  EXPECT_LT((EventId{1, 9}), (EventId{2, 1}));
  EXPECT_LT((EventId{2, 1}), (EventId{2, 9}));
  EXPECT_LT((EventId{9, 1}), (EventId{10, 1}));
}

}  // namespace
}  // namespace tidemark::temporal
