// One outgoing webhook: posts each event of its datasets to a receiver, one at a time, in the order
// in which they were committed, at least once. What was acknowledged stands in the store, so that a
// process that dies loses nothing and repeats at most the event that was under way. One process at
// a time delivers, by a lease of the webhook's own. docs/reference/webhooks.md.
//
//   await lease ──► next event ──► post ──► 2xx: store the place ──► next event
//        ▲                          │ 410: disabled, until somebody enables it in the store
//        │ store lost, lease lost   └ anything else: wait, twice as long each time ──► post again
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "http/url.h"

namespace tidemark::http {

struct WebhookOptions {
  std::string name;
  std::string store_dsn;
  Url url;
  std::vector<std::string> keys;      // as SigningKey makes them; each signs
  std::vector<std::string> datasets;  // declared names, schema.table, or mirrors; empty: all
  std::chrono::milliseconds attempt_max{15'000};
  std::chrono::milliseconds first_pause{1'000};
  std::chrono::milliseconds pause_max{60'000};
};

/// The pause after that many failures in a row: doubling from the first one up to the longest, of
/// which `random` (0 to 1) takes off up to a half, so that many senders do not come back at once.
/// Pure.
std::chrono::milliseconds PauseAfter(int failures, const WebhookOptions& options, double random);

/// Delivers until stopped. A receiver or store that is away is waited for. Throws only for a bug of
/// ours.
void DeliverWebhook(const WebhookOptions& options, std::stop_token stop);

}  // namespace tidemark::http
