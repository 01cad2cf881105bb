// Waiting for something that can only be asked for. All sides of a comparison are watched by this
// one loop, so that they pay the same for it.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/clock.h"

namespace tidemark::bench {

inline constexpr std::chrono::milliseconds kPollInterval{10};

/// Asks `reached` every 10 ms. Throws when it has not become true within `limit`.
template <typename Reached>
void PollUntil(const std::string& what, std::chrono::milliseconds limit, Reached reached) {
  const auto deadline = base::Deadline::After(limit);
  while (!reached()) {
    if (deadline.passed()) throw std::runtime_error("waited too long for " + what);
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace tidemark::bench
