// One piece of work at a time, on a thread of its own.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tidemark::capture {

class PublishingThread {
 public:
  PublishingThread();
  /// Waits for what is running.
  ~PublishingThread() = default;
  PublishingThread(const PublishingThread&) = delete;
  PublishingThread& operator=(const PublishingThread&) = delete;

  /// Begins `work`; Wait() has been called for what was begun before. `work` is destroyed on the
  /// thread, before it counts as ended; then `ended` is called there.
  void Start(std::function<void()> work, std::function<void()> ended);
  /// Until what was begun, if anything was, has ended. Throws what it threw, once.
  void Wait();
  /// Begun and not ended.
  bool busy() const;

 private:
  void Run(const std::stop_token& stop);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::function<void()> work_, ended_;
  bool busy_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace tidemark::capture
