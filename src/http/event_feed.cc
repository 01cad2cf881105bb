#include "http/event_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "http/store_connection.h"
#include "pg/notification_stream.h"
#include "pg/wait.h"

namespace tidemark::http {

namespace {

using base::Deadline;
using base::Error;

constexpr std::chrono::milliseconds kLookEvery{500};        // where nobody can listen
constexpr std::chrono::milliseconds kLookAnyway{1000};      // a notification may be left out
constexpr std::chrono::milliseconds kLoadSpacing{10};       // many publishes are loaded together
constexpr std::chrono::milliseconds kFirstPause{200}, kLongestPause{5000};
constexpr std::chrono::seconds kStatementLimit{30};
constexpr int64_t kPage = 500;

}  // namespace

bool EventFeed::LoadNews(pg::Connection& store) {
  if (!ring_.newest()) {
    ring_.Begin(temporal::LoadNewestEventId(store));
    options_.on_news();
    return false;
  }
  bool any = false;
  for (;;) {
    const auto page = temporal::LoadEvents(store, *ring_.newest(), kPage);
    ring_.Add(page);
    if (!page.events.empty()) options_.on_news();
    any = any || !page.events.empty();
    if (!page.more) return any;
  }
}

void EventFeed::CheckPast(pg::Connection& store) {
  if (!ring_.newest()) return;
  try {
    temporal::RequireResumable(store, *ring_.newest());
  } catch (const Error& error) {
    if (error.state() != base::kNotInPrerequisiteState) throw;
    options_.on_log(fmt::format("events: {}; starting anew", error.what()));
    ring_.Forget();
    options_.on_other_past();
  }
}

void EventFeed::Follow(const std::stop_token& stop) {
  auto store = OpenCurrentStore(options_.store_dsn, stop);
  store.SetLimits(kStatementLimit, stop);
  const bool standby = store.Value("SELECT pg_catalog.pg_is_in_recovery()") == "t";
  std::optional<pg::NotificationStream> notifications;
  // Before the first look: what is published after it is heard of.
  if (!standby) {
    notifications.emplace(options_.store_dsn, temporal::kEventChannel,
                          Deadline::After(kStoreConnectLimit), stop);
  }
  CheckPast(store);
  pg::Bell pause;
  for (;;) {
    const bool any = LoadNews(store);
    if (!std::exchange(following_, true)) options_.on_log("events: following the store");
    if (any) pause.Wait(-1, false, Deadline::After(kLoadSpacing), stop);
    if (standby) {
      pause.Wait(-1, false, Deadline::After(kLookEvery), stop);
      if (store.Value("SELECT pg_catalog.pg_is_in_recovery()") != "t") return;
      continue;
    }
    auto until = Deadline::After(kLookAnyway);
    while (notifications->Next(until, stop)) until = Deadline::After(std::chrono::seconds(0));
  }
}

void EventFeed::Run(const std::stop_token& stop) {
  auto pause = kFirstPause;
  pg::Bell bell;
  while (!stop.stop_requested()) {
    try {
      following_ = false;
      Follow(stop);
      pause = kFirstPause;
    } catch (const Error& error) {
      if (stop.stop_requested()) return;
      if (error.state() == base::kSnapshotTooOld) {
        // We have been away for longer than events are kept; subscribers learn so from the store.
        ring_.Forget();
        continue;
      }
      if (following_) pause = kFirstPause;
      options_.on_log(fmt::format("events: {}", error.what()));
      try {
        bell.Wait(-1, false, Deadline::After(pause), stop);
      } catch (const Error&) {
        return;  // stopped
      }
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

}  // namespace tidemark::http
