#include "bench/bounded_run.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "base/clock.h"
#include "base/error.h"

namespace tidemark::bench {

namespace {

sigset_t EndingSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

BoundedRun::BoundedRun(std::chrono::minutes limit) : limit_(limit) {
  const sigset_t signals = EndingSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([this](std::stop_token stop) { Watch(stop); });
}

BoundedRun::~BoundedRun() = default;

void BoundedRun::Keep(const Hold&, tests::Cluster& cluster) { clusters_.push_back(&cluster); }

void BoundedRun::Forget(const Hold&, tests::Cluster& cluster) { std::erase(clusters_, &cluster); }

void BoundedRun::Watch(const std::stop_token& stop) {
  const sigset_t signals = EndingSignals();
  const auto end = base::Deadline::After(limit_);
  const timespec slice{0, 100'000'000};
  int caught = -1;
  while (!stop.stop_requested() && caught < 0 && !end.passed()) {
    caught = ::sigtimedwait(&signals, nullptr, &slice);
  }
  if (stop.stop_requested()) return;
  fmt::print(stderr, "{}: stopping the servers\n",
             caught > 0 ? "interrupted" : fmt::format("not done after {}", limit_.count()));
  const std::lock_guard lock(mutex_);
  for (auto* cluster : clusters_) {
    try {
      cluster->Stop("immediate");
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    std::error_code ignored;
    std::filesystem::remove_all(cluster->directory(), ignored);
  }
  ::_exit(caught > 0 ? 128 + caught : 1);
}

int BoundedRun::Main(const std::function<void()>& measure) {
  try {
    measure();
    return 0;
  } catch (const base::Error& error) {
    fmt::print(stderr, "{}\n", error.Full());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
  }
  return 1;
}

}  // namespace tidemark::bench
