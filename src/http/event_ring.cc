#include "http/event_ring.h"

#include <algorithm>

#include "http/event_frame.h"

namespace tidemark::http {

using temporal::Event;
using temporal::EventId;
using temporal::EventPage;

bool Wants(const EventFilter& filter, const Event& event) {
  return !filter || *filter == event.dataset || *filter == event.relation;
}

EventFrames FramesOf(const EventPage& page, const EventFilter& filter) {
  EventFrames frames{.text = "", .events = 0, .reached = page.reached};
  for (const auto& event : page.events) {
    if (!Wants(filter, event)) continue;
    frames.text += EventFrame(event);
    ++frames.events;
  }
  return frames;
}

void EventRing::Begin(EventId after) {
  const std::scoped_lock lock(mutex_);
  kept_.clear();
  bytes_ = 0;
  begin_ = newest_ = after;
  begun_ = true;
}

void EventRing::Forget() {
  const std::scoped_lock lock(mutex_);
  kept_.clear();
  bytes_ = 0;
  begun_ = false;
}

void EventRing::Add(const EventPage& page) {
  const std::scoped_lock lock(mutex_);
  for (const auto& event : page.events) {
    kept_.push_back({event, EventFrame(event)});
    bytes_ += kept_.back().bytes();
  }
  newest_ = std::max(newest_, page.reached);
  while (bytes_ > bytes_max_ && !kept_.empty()) {
    begin_ = kept_.front().event.id;
    bytes_ -= kept_.front().bytes();
    kept_.pop_front();
  }
}

std::optional<EventId> EventRing::newest() const {
  const std::scoped_lock lock(mutex_);
  if (!begun_) return std::nullopt;
  return newest_;
}

std::optional<EventFrames> EventRing::After(EventId after, const EventFilter& filter,
                                            size_t bytes_max) const {
  const std::scoped_lock lock(mutex_);
  if (!begun_ || after < begin_) return std::nullopt;
  EventFrames frames{.text = "", .events = 0, .reached = std::max(after, newest_)};
  auto next = std::upper_bound(kept_.begin(), kept_.end(), after,
                               [](EventId id, const Kept& kept) { return id < kept.event.id; });
  for (; next != kept_.end(); ++next) {
    if (!Wants(filter, next->event)) continue;
    frames.text += next->frame;
    ++frames.events;
    if (frames.text.size() >= bytes_max) {
      frames.reached = next->event.id;
      break;
    }
  }
  return frames;
}

}  // namespace tidemark::http
