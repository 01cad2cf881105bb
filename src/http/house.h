// What a connection has of its server: all that connections share. Lives as long as they do; used
// on the server's own thread, but for the counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "http/event_ring.h"
#include "http/options.h"
#include "http/router.h"
#include "http/store_workers.h"

namespace tidemark::http {

class Connection;

/// Any thread.
struct ServerCounts {
  std::atomic<uint64_t> connections = 0, subscribers = 0;        // now
  std::atomic<uint64_t> requests = 0, events_sent = 0, cut = 0;  // since the start
};

/// One of the places of those who read events; given back by the destructor.
class SubscriberSeat {
 public:
  /// Nothing is taken when all are.
  static std::optional<SubscriberSeat> Take(ServerCounts& counts, size_t seats) {
    if (counts.subscribers >= seats) return std::nullopt;
    return SubscriberSeat(counts);
  }
  SubscriberSeat(SubscriberSeat&& other) noexcept
      : counts_(std::exchange(other.counts_, nullptr)) {}
  SubscriberSeat& operator=(SubscriberSeat&&) = delete;
  ~SubscriberSeat() {
    if (counts_ != nullptr) --counts_->subscribers;
  }

 private:
  explicit SubscriberSeat(ServerCounts& counts) : counts_(&counts) { ++counts.subscribers; }
  ServerCounts* counts_;
};

struct House {
  const Options& options;
  const Router& router;
  StoreWorkers& workers;
  const EventRing& ring;
  ServerCounts& counts;
  /// The connection is closed and wants nothing any more.
  std::function<void(Connection*)> gone;
  /// The connection goes on as another one, which has not started yet.
  std::function<void(Connection*, std::shared_ptr<Connection>)> became;
};

}  // namespace tidemark::http
