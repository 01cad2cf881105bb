// The frame of a measuring program: it ends by itself, on SIGINT or SIGTERM, or at its time limit,
// and leaves no server and no folder behind in any of these cases. Construct it first in main(),
// before any thread; a thread of its own waits for the signals.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/cluster.h"

namespace tidemark::bench {

class BoundedRun {
 public:
  explicit BoundedRun(std::chrono::minutes limit);
  ~BoundedRun();
  BoundedRun(const BoundedRun&) = delete;
  BoundedRun& operator=(const BoundedRun&) = delete;

  /// While one lives the run is not cut short: a cluster is being made or removed.
  using Hold = std::unique_lock<std::mutex>;
  Hold Delay() { return Hold(mutex_); }
  /// Stops `cluster` and removes its folder if the run is cut short. It must live until Forget.
  void Keep(const Hold& hold, tests::Cluster& cluster);
  void Forget(const Hold& hold, tests::Cluster& cluster);

  /// Runs `measure`, prints what it throws; the program's exit code.
  static int Main(const std::function<void()>& measure);

 private:
  void Watch(const std::stop_token& stop);
  std::chrono::minutes limit_;
  std::mutex mutex_;
  std::vector<tests::Cluster*> clusters_;
  std::jthread watcher_;
};

}  // namespace tidemark::bench
