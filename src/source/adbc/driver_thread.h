// The thread that a driver's calls run on, so that a call which does not return in time does not
// hold up its caller: ADBC's calls know neither deadline nor stop. One call at a time. Destroying
// it waits for the call that is under way.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "source/reader.h"

namespace tidemark::source {

class DriverThread {
 public:
  DriverThread();
  ~DriverThread();
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;

  /// Runs `call` on the thread and waits for its result. When the limit ends first, `interrupt` is
  /// called on the calling thread, and 57014 thrown; the call may then still be running, so it must
  /// not refer to the caller's locals.
  template <typename T>
  T Run(std::function<T()> call, const Limit& limit, const std::function<void()>& interrupt) {
    const auto result = std::make_shared<std::optional<T>>();
    RunTask([call = std::move(call), result] { *result = call(); }, limit, interrupt);
    return std::move(**result);
  }

  /// Queues `call` behind what is running and does not wait: for giving things back to the driver.
  void Post(std::function<void()> call);

 private:
  void RunTask(std::function<void()> task, const Limit& limit,
               const std::function<void()>& interrupt);
  void Work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::function<void()>> queue_;
  std::jthread worker_;  // last: uses the members above
};

}  // namespace tidemark::source
