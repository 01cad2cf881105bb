// Where an outgoing webhook stands, as the store keeps it: the last event that its receiver has
// acknowledged, and how the attempts since then went. One thread (the connection's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/event.h"
#include "temporal/lease.h"

namespace tidemark::temporal {

struct WebhookState {
  EventId last;
  int failures = 0;       // in a row
  bool disabled = false;  // the receiver wants no more
};

/// What a webhook is to be sent next.
struct WebhookEvents {
  std::vector<Event> events;  // in order
  EventId seen;               // nothing else up to here is meant for it
  bool gap = false;           // events after the last one have been pruned
};

/// Registers the webhook if it is new: it begins after the newest event that there is.
void EnsureWebhook(pg::Connection& store, const std::string& name);

WebhookState LoadWebhook(pg::Connection& store, const std::string& name);

/// At most `limit` of the events after `after` whose dataset, relation or mirror is one of
/// `datasets`; all, if that is empty.
WebhookEvents LoadWebhookEvents(pg::Connection& store, EventId after,
                                const std::vector<std::string>& datasets, int limit);

// What became of an attempt. Each throws 55000 when another process has taken the lease over.

/// The receiver has acknowledged `event`.
void StoreDelivered(pg::Connection& store, const Lease& lease, const std::string& name,
                    EventId event);
/// Nothing up to `event` was meant for it.
void StoreSkipped(pg::Connection& store, const Lease& lease, const std::string& name,
                  EventId event);
/// `error` is for people. `disabled`: the receiver wants no more.
void StoreFailed(pg::Connection& store, const Lease& lease, const std::string& name,
                 const std::string& error, bool disabled);

}  // namespace tidemark::temporal
