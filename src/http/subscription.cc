#include "http/subscription.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::http {

using base::Error;
using temporal::EventId;

Subscription Subscription::Parse(const Request& request) {
  Subscription subscription;
  std::optional<std::string> id;
  if (const auto header = request.Header("last-event-id")) {
    id = std::string(*header);
  } else if (const auto given = request.query.find("last_event_id"); given != request.query.end()) {
    id = given->second;
  }
  if (id) {
    subscription.after = EventId::Parse(*id);
    if (!subscription.after) {
      throw Error(base::kInvalidParameter, fmt::format("\"{}\" is no event's id", *id))
          .Hint("Send the id of the last event that was received, such as 12-3, or 0-0 for all "
                "that are kept.");
    }
  }
  if (const auto given = request.query.find("dataset"); given != request.query.end()) {
    if (given->second.empty()) {
      throw Error(base::kInvalidParameter, "\"dataset\" must name a dataset");
    }
    subscription.filter = given->second;
  }
  return subscription;
}

EventId Subscription::Place(pg::Connection& store) const {
  if (!after) return temporal::LoadNewestEventId(store);
  temporal::RequireResumable(store, *after);
  return *after;
}

}  // namespace tidemark::http
