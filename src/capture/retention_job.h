// Declared retention, kept by itself: drops history that is older, about once an hour, until
// stopped. What a reader still holds is left to the next time; failures are logged and tried again
// sooner. The store only. Runs on the caller's thread.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "temporal/prune.h"

namespace tidemark::capture {

struct RetentionOptions {
  std::string store_dsn;
  std::vector<temporal::Retention> retentions;
  std::chrono::seconds first_after{60}, every{3600}, again_after{300};
  /// The wall clock by which it becomes due. How old history is, the store's own clock says.
  std::function<base::Timestamp()> now;
  std::chrono::milliseconds look_every{10'000};  // at the clock
};

/// Returns on stop.
void KeepRetention(const RetentionOptions& options, std::stop_token stop);

}  // namespace tidemark::capture
