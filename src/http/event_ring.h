// The newest events of the store, ready to be sent: what every subscriber that keeps up is fed
// from, so that many of them cost the store one query. Bounded; who has fallen behind it reads from
// the store. One writer (event_feed.h), any readers; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "temporal/event.h"

namespace tidemark::http {

/// Whose events somebody wants: one dataset's, by its name or its relation's, or all.
using EventFilter = std::optional<std::string>;

bool Wants(const EventFilter& filter, const temporal::Event& event);

/// What is to be sent next: frames of events, and up to where nothing is missing then.
struct EventFrames {
  std::string text;
  uint64_t events = 0;
  temporal::EventId reached;
};

/// The frames of the page's events that are wanted.
EventFrames FramesOf(const temporal::EventPage& page, const EventFilter& filter);

class EventRing {
 public:
  explicit EventRing(size_t bytes_max = size_t{4} << 20) : bytes_max_(bytes_max) {}

  /// Nothing is known up to `after`; what comes next is added.
  void Begin(temporal::EventId after);
  /// As before Begin.
  void Forget();
  /// The events between the newest one and `page.reached`, in order. The oldest ones give way.
  void Add(const temporal::EventPage& page);
  /// Up to where the ring has everything; nullopt unless it has begun.
  std::optional<temporal::EventId> newest() const;

  /// What follows `after`, whole events up to about `bytes_max` bytes; nothing, when there is
  /// nothing new. nullopt when the ring does not reach back that far.
  std::optional<EventFrames> After(temporal::EventId after, const EventFilter& filter,
                                   size_t bytes_max) const;

 private:
  struct Kept {
    temporal::Event event;
    std::string frame;
    size_t bytes() const { return event.text.size() + frame.size() + sizeof(Kept); }
  };
  const size_t bytes_max_;
  mutable std::mutex mutex_;  // guards what follows
  bool begun_ = false;
  temporal::EventId begin_, newest_;  // has everything after begin_, up to newest_
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace tidemark::http
