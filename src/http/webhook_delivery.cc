#include "http/webhook_delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "http/client.h"
#include "http/signature.h"
#include "pg/notification_stream.h"
#include "pg/wait.h"
#include "temporal/lease.h"
#include "temporal/store.h"
#include "temporal/webhook.h"

namespace tidemark::http {

using base::Deadline;
using base::Error;
using temporal::Event;
using temporal::EventId;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::seconds kStatementMax{60};
constexpr std::chrono::milliseconds kEnabledEvery{500};
// A wake-up may be missing.
constexpr std::chrono::seconds kLookEvery{2};
constexpr std::chrono::seconds kStoreAwayPause{1};
constexpr int kBatchEvents = 100;
// How many bases of other datasets pass before that is worth a write.
constexpr int64_t kSkippedBases = 1000;
constexpr int kGone = 410;

void Pause(std::chrono::milliseconds span, const std::stop_token& stop) {
  pg::Bell().Wait(-1, false, Deadline::After(span), stop);
}

/// What one attempt came to.
struct Attempt {
  bool delivered = false, gone = false;
  std::string error;  // unless delivered
};

/// Deliveries under one lease over one connection to the store.
class Session {
 public:
  Session(const WebhookOptions& options, Client& client, const std::stop_token& stop)
      : options_(options),
        client_(client),
        stop_(stop),
        store_(temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop)),
        lease_(Begin()),
        store_id_(store_.Value("SELECT id FROM tidemark.store")),
        state_(temporal::LoadWebhook(store_, options.name)),
        stored_(state_.last) {}

  /// Returns never but by what it throws.
  void Deliver() {
    for (;;) {
      if (state_.disabled) {
        AwaitEnabled();
        continue;
      }
      const auto next =
          temporal::LoadWebhookEvents(store_, state_.last, options_.datasets, kBatchEvents);
      if (next.gap) WarnOfGap();
      for (const auto& event : next.events) {
        if (!DeliverOne(event)) break;
      }
      if (next.events.empty()) {
        Skip(next.seen);
        AwaitEvents();
      }
    }
  }

 private:
  temporal::Lease Begin() {
    temporal::Migrate(store_);
    auto lease = temporal::Lease::Take(store_, fmt::format("(webhook {})", options_.name), stop_);
    store_.SetLimits(kStatementMax, stop_);
    temporal::EnsureWebhook(store_, options_.name);
    return lease;
  }

  /// True when the receiver has acknowledged it; false when it wants no more.
  bool DeliverOne(const Event& event) {
    for (;;) {
      base::KillPoint("webhook.before_post");
      const auto attempt = Post(event);
      base::KillPoint("webhook.after_post");
      if (attempt.delivered) {
        temporal::StoreDelivered(store_, lease_, options_.name, event.id);
        if (state_.failures > 0) {
          spdlog::info("webhook {}: the receiver answers again", options_.name);
        }
        state_ = {.last = event.id, .failures = 0, .disabled = false};
        stored_ = event.id;
        return true;
      }
      temporal::StoreFailed(store_, lease_, options_.name, attempt.error, attempt.gone);
      if (attempt.gone) {
        spdlog::error("webhook {}: the receiver wants no more events; it is disabled",
                      options_.name);
        state_.disabled = true;
        wake_.reset();
        return false;
      }
      if (state_.failures++ == 0) {
        spdlog::warn("webhook {}: {}; trying again until it is acknowledged", options_.name,
                     attempt.error);
      }
      wake_.reset();  // who listens must read: PostgreSQL keeps what is not read
      Pause(PauseAfter(state_.failures, options_, jitter_(random_)), stop_);
    }
  }

  Attempt Post(const Event& event) {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    // Unique among all stores that tell the same receiver, and the same in each attempt.
    const auto headers = SignStandard(
        options_.keys, fmt::format("{}_{}", store_id_, event.id.ToString()), now, event.text);
    try {
      const int status =
          client_.Post(event.text, headers, Deadline::After(options_.attempt_max), stop_);
      if (status / 100 == 2) return {.delivered = true, .gone = false, .error = ""};
      return {.delivered = false,
              .gone = status == kGone,
              .error = fmt::format("the receiver answered {}", status)};
    } catch (const Error& error) {
      if (stop_.stop_requested() || error.state() == base::kInternalError) throw;
      return {.delivered = false, .gone = false, .error = error.message()};
    }
  }

  /// Returns when there may be events. The first call only begins to listen, since some may have
  /// come just before.
  void AwaitEvents() {
    if (!wake_) {
      wake_.emplace(options_.store_dsn, temporal::kEventChannel, Deadline::After(kConnectMax),
                    stop_);
      return;
    }
    if (!wake_->Next(Deadline::After(kLookEvery), stop_)) return;
    while (wake_->Next(Deadline::After({}), stop_)) {
    }
  }

  void AwaitEnabled() {
    Pause(kEnabledEvery, stop_);
    state_ = temporal::LoadWebhook(store_, options_.name);
    stored_ = state_.last;
    if (!state_.disabled) spdlog::info("webhook {}: it is enabled again", options_.name);
  }

  void Skip(EventId seen) {
    if (seen <= state_.last) return;
    state_.last = seen;
    if (seen.basis - stored_.basis < kSkippedBases) return;
    temporal::StoreSkipped(store_, lease_, options_.name, seen);
    stored_ = seen;
  }

  void WarnOfGap() {
    if (gap_told_) return;
    spdlog::warn("webhook {}: events after {} have been pruned before they were delivered",
                 options_.name, state_.last.ToString());
    gap_told_ = true;
  }

  const WebhookOptions& options_;
  Client& client_;
  const std::stop_token& stop_;
  pg::Connection store_;
  temporal::Lease lease_;
  std::string store_id_;
  std::optional<pg::NotificationStream> wake_;
  temporal::WebhookState state_;
  EventId stored_;  // what the store says; state_.last may be further
  bool gap_told_ = false;
  std::mt19937 random_{std::random_device{}()};
  std::uniform_real_distribution<double> jitter_{0, 1};
};

}  // namespace

std::chrono::milliseconds PauseAfter(int failures, const WebhookOptions& options, double random) {
  auto pause = options.first_pause;
  for (int i = 1; i < failures && pause < options.pause_max; ++i) pause *= 2;
  pause = std::min(pause, options.pause_max);
  return std::chrono::milliseconds(
      static_cast<int64_t>(static_cast<double>(pause.count()) * (1 - random / 2)));
}

void DeliverWebhook(const WebhookOptions& options, std::stop_token stop) {
  Client client(options.url);
  std::string told;
  while (!stop.stop_requested()) {
    try {
      Session(options, client, stop).Deliver();
    } catch (const Error& error) {
      if (stop.stop_requested()) return;
      if (error.state() == base::kInternalError) throw;
      if (told != error.what()) {
        spdlog::warn("webhook {}: beginning again: {}", options.name, error.what());
      }
      told = error.what();
    }
    try {
      Pause(kStoreAwayPause, stop);
    } catch (const Error&) {
      return;  // stopped
    }
  }
}

}  // namespace tidemark::http
