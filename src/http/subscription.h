// What a request for events asks for. Pure but for Place, which asks the store.
#pragma once

#include <optional>

#include "http/event_ring.h"
#include "http/message.h"
#include "pg/connection.h"
#include "temporal/event.h"

namespace tidemark::http {

struct Subscription {
  /// The last event that the client has: what follows it is sent. nullopt: what comes next.
  std::optional<temporal::EventId> after;
  EventFilter filter;

  /// From `Last-Event-ID`, which counts more since it is newer when a client connects again, or
  /// `?last_event_id=`, and `?dataset=`. Throws 22023 when an id is no id or the dataset is empty.
  static Subscription Parse(const Request& request);

  /// After which event to begin, one round trip. Throws as RequireResumable.
  temporal::EventId Place(pg::Connection& store) const;
};

}  // namespace tidemark::http
