#include "capture/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tidemark::capture {

void RunParallel(int workers, size_t tasks, std::stop_token stop,
                 const std::function<void(WorkQueue&, std::stop_token)>& worker) {
  WorkQueue queue(tasks);
  std::stop_source all;
  std::stop_callback forward(stop, [&] { all.request_stop(); });
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    const size_t count = std::min(tasks, static_cast<size_t>(std::max(1, workers)));
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        try {
          worker(queue, all.get_token());
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
          all.request_stop();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace tidemark::capture
