// A fixed number of workers over a fixed list of tasks. The first failure stops the others and is
// thrown by RunParallel.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>

namespace tidemark::capture {

/// Hands out the indexes 0 … count-1, each once. Any thread.
class WorkQueue {
 public:
  explicit WorkQueue(size_t count) : count_(count) {}
  std::optional<size_t> Take() {
    const size_t next = next_.fetch_add(1);
    return next < count_ ? std::optional(next) : std::nullopt;
  }

 private:
  std::atomic<size_t> next_{0};
  size_t count_;
};

/// Runs `worker` on min(workers, tasks) threads and waits for all. A worker takes tasks until there
/// are none; its stop token is requested when another failed or `stop` was.
void RunParallel(int workers, size_t tasks, std::stop_token stop,
                 const std::function<void(WorkQueue&, std::stop_token)>& worker);

}  // namespace tidemark::capture
