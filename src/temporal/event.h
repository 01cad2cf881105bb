// What the store tells of its datasets: that a basis changed one of them. Read from the view
// tidemark.event (schema/0007_events.sql); written by nobody, since the members of the bases are
// the outbox. Events are ordered by their ids, in the order of the publishes. One thread (the
// connection's). docs/design/0008-events.md.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pg/connection.h"

namespace tidemark::temporal {

/// The channel on which the store wakes who waits for events. The payload is an event's text or,
/// where that is too long, its id and kind; what to read is LoadEvents, since a wake-up may be
/// missing.
inline constexpr const char* kEventChannel = "tidemark_events";

/// An event's place among all: "<basis>-<dataset>" as text. {0, 0} is before the first.
struct EventId {
  int64_t basis = 0;
  int32_t dataset = 0;

  auto operator<=>(const EventId&) const = default;
  std::string ToString() const;
  /// nullopt for anything that ToString does not write.
  static std::optional<EventId> Parse(std::string_view text);
};

struct Event {
  EventId id;
  std::string dataset;   // its declared name; "schema.table" for a mirrored one
  std::string relation;  // "schema.table" in the store
  std::string text;      // the whole event as JSON: docs/reference/http.md
};

struct EventPage {
  std::vector<Event> events;  // in order
  /// Up to here nothing that was asked for is missing: where to go on.
  EventId reached;
  /// There may be more right now.
  bool more = false;
};

/// The events after `after`, at most `limit`; of one dataset, by its name or its relation's, if
/// asked for. Throws 72000 when events after `after` have been pruned. One round trip; cost grows
/// with the members after `after`, and with those alone.
EventPage LoadEvents(pg::Connection& store, EventId after, int64_t limit,
                     const std::optional<std::string>& dataset = std::nullopt);

/// Where the events end now: what comes next comes after it.
EventId LoadNewestEventId(pg::Connection& store);

/// Throws 72000 when events after `after` have been pruned, and 55000 when `after` is newer than
/// anything this store has published; a hot standby may still be about to receive that.
void RequireResumable(pg::Connection& store, EventId after);

}  // namespace tidemark::temporal
