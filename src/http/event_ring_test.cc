#include "http/event_ring.h"

#include <gtest/gtest.h>

#include "http/event_frame.h"
#include "http/subscription.h"

namespace tidemark::http {
namespace {

using temporal::Event;
using temporal::EventId;
using temporal::EventPage;

Event At(int64_t basis, int32_t dataset, const std::string& text = "{}") {
  const auto name = "d" + std::to_string(dataset);
  return {{basis, dataset}, name, "s." + name, text};
}

EventPage Page(std::vector<Event> events) {
  const auto reached = events.back().id;
  return {.events = std::move(events), .reached = reached};
}

/// The ids of what follows.
std::string Ids(const std::optional<EventFrames>& frames) {
  if (!frames) return "behind";
  std::string ids;
  for (size_t at = 0; (at = frames->text.find("id: ", at)) != std::string::npos; ++at) {
    ids += frames->text.substr(at + 4, frames->text.find('\n', at) - at - 4) + " ";
  }
  return ids + "-> " + frames->reached.ToString();
}

TEST(EventRing, GivesWhatFollowsWholeAndInOrder) {
  EventRing ring;
  EXPECT_EQ(Ids(ring.After({0, 0}, {}, 1000)), "behind");
  ring.Begin({5, 0});
  EXPECT_EQ(Ids(ring.After({5, 0}, {}, 1000)), "-> 5-0");
  ring.Add(Page({At(6, 1), At(6, 2), At(7, 1)}));
  EXPECT_EQ(Ids(ring.After({5, 0}, {}, 1000)), "6-1 6-2 7-1 -> 7-1");
  EXPECT_EQ(Ids(ring.After({6, 1}, {}, 1000)), "6-2 7-1 -> 7-1");
  EXPECT_EQ(Ids(ring.After({6, 7}, {}, 1000)), "7-1 -> 7-1");
  EXPECT_EQ(Ids(ring.After({7, 1}, {}, 1000)), "-> 7-1");
  EXPECT_EQ(Ids(ring.After({9, 0}, {}, 1000)), "-> 9-0");
  EXPECT_EQ(Ids(ring.After({4, 9}, {}, 1000)), "behind");
}

TEST(EventRing, AFilterSkipsAndStillAdvances) {
  EventRing ring;
  ring.Begin({0, 0});
  ring.Add(Page({At(1, 1), At(1, 2), At(2, 2)}));
  EXPECT_EQ(Ids(ring.After({0, 0}, "d1", 1000)), "1-1 -> 2-2");
  EXPECT_EQ(Ids(ring.After({0, 0}, "s.d2", 1000)), "1-2 2-2 -> 2-2");
  EXPECT_EQ(Ids(ring.After({0, 0}, "nobody", 1000)), "-> 2-2");
}

TEST(EventRing, APortionEndsAfterTheEventThatFillsIt) {
  EventRing ring;
  ring.Begin({0, 0});
  ring.Add(Page({At(1, 1), At(2, 1), At(3, 1)}));
  EXPECT_EQ(Ids(ring.After({0, 0}, {}, 1)), "1-1 -> 1-1");
  EXPECT_EQ(Ids(ring.After({1, 1}, {}, 1)), "2-1 -> 2-1");
}

TEST(EventRing, TheOldestGiveWayAndWhoNeedsThemIsBehind) {
  EventRing ring(2000);
  ring.Begin({0, 0});
  for (int64_t basis = 1; basis <= 50; ++basis) {
    ring.Add(Page({At(basis, 1, std::string(200, 'x'))}));
  }
  EXPECT_EQ(Ids(ring.After({0, 0}, {}, 1 << 20)), "behind");
  EXPECT_EQ(Ids(ring.After({49, 1}, {}, 1 << 20)), "50-1 -> 50-1");
  EXPECT_EQ(ring.newest(), (EventId{50, 1}));
  // What is kept follows what was given up without a gap.
  int64_t first = 50;
  while (ring.After({first - 1, 1}, {}, 1 << 20)) --first;
  EXPECT_EQ(Ids(ring.After({first, 1}, {}, 1)),
            std::to_string(first + 1) + "-1 -> " + std::to_string(first + 1) + "-1");
}

TEST(EventRing, OneEventLargerThanAllRoomLeavesAConsistentRing) {
  EventRing ring(100);
  ring.Begin({0, 0});
  ring.Add(Page({At(1, 1, std::string(1000, 'x'))}));
  EXPECT_EQ(Ids(ring.After({0, 0}, {}, 1000)), "behind");
  EXPECT_EQ(Ids(ring.After({1, 1}, {}, 1000)), "-> 1-1");
}

TEST(EventFrame, IsAnEventOfOneLineOfData) {
  EXPECT_EQ(EventFrame(At(12, 3, "{\"a\": 1}")),
            "id: 12-3\nevent: dataset.changed\ndata: {\"a\": 1}\n\n");
  EXPECT_EQ(Chunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

TEST(SubscriptionTest, TheHeaderCountsMoreThanTheAddress) {
  Request request{.query = {{"last_event_id", "1-1"}, {"dataset", "d"}}};
  EXPECT_EQ(Subscription::Parse(request).after, (EventId{1, 1}));
  EXPECT_EQ(Subscription::Parse(request).filter, "d");
  request.headers["last-event-id"] = "2-2";
  EXPECT_EQ(Subscription::Parse(request).after, (EventId{2, 2}));
  EXPECT_EQ(Subscription::Parse({}).after, std::nullopt);
  for (const char* wrong : {"", "x", "1", "1-2-3", "-1-2", "1-2, 3-4"}) {
    request.headers["last-event-id"] = wrong;
    EXPECT_THROW(Subscription::Parse(request), base::Error) << wrong;
  }
  EXPECT_THROW(Subscription::Parse({.query = {{"dataset", ""}}}), base::Error);
}

}  // namespace
}  // namespace tidemark::http
