// Follows the store's events into an EventRing: woken by its notifications, and by looking where
// nobody can listen (a hot standby) or a notification was left out. One thread of its own, one
// query however many subscribers; a store that is away is waited for, and nothing is missed
// meanwhile.
//
//   connecting ──► listening ⇄ loading ──store lost──► waiting (doubling to 5 s) ──► connecting
//        └─standby─► looking ⇄ loading ──promoted──► connecting
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "http/event_ring.h"
#include "pg/connection.h"

namespace tidemark::http {

class EventFeed {
 public:
  struct Options {
    std::string store_dsn;
    /// Called on the feed's thread after something was added, and when the ring has begun.
    std::function<void()> on_news;
    /// Called when the store turns out to have another past than what was sent: it was restored,
    /// say.
    std::function<void()> on_other_past;
    std::function<void(std::string_view)> on_log;
  };
  EventFeed(Options options, EventRing& ring) : options_(std::move(options)), ring_(ring) {}

  /// Follows until stopped.
  void Run(const std::stop_token& stop);

 private:
  /// Until the store is lost (throws), or is no longer what it was.
  void Follow(const std::stop_token& stop);
  /// True when there was something.
  bool LoadNews(pg::Connection& store);
  void CheckPast(pg::Connection& store);

  Options options_;
  EventRing& ring_;
  bool following_ = false;
};

}  // namespace tidemark::http
