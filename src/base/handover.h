// What one thread makes and another needs, handed over in order through a queue of bounded length:
// the giver waits while it is full, the taker while it is empty. The giver's failure becomes the
// taker's. One giver, one taker; each on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace tidemark::base {

template <typename T>
class Handover {
 public:
  /// Holds at most so many items.
  explicit Handover(size_t items_max) : items_max_(items_max) {}

  /// Giver: false when `stop` was requested before there was room; the item is dropped then.
  bool Give(T item, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!room_.wait(lock, stop, [&] { return items_.size() < items_max_; })) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    arrived_.notify_one();
    return true;
  }
  /// Giver: there is no more. With `failure` Take throws that instead of saying so.
  void End(std::exception_ptr failure = nullptr) {
    std::unique_lock lock(mutex_);
    ended_ = true;
    failure_ = std::move(failure);
    lock.unlock();
    arrived_.notify_one();
  }

  /// Taker: the next item, nullopt after the last. Throws the giver's failure, again at each
  /// further call, and 57014 on stop or when the deadline has passed.
  std::optional<T> Take(Deadline deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return !items_.empty() || ended_; };
    while (!arrived_.wait_for(lock, stop, deadline.left(), ready)) {
      if (stop.stop_requested()) throw Error(kQueryCanceled, "stopped");
      if (deadline.passed()) throw Error(kQueryCanceled, "the next rows did not come in time");
    }
    if (items_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return std::nullopt;
    }
    T item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    room_.notify_one();
    return item;
  }

 private:
  size_t items_max_;
  std::mutex mutex_;
  std::condition_variable_any room_, arrived_;
  std::deque<T> items_;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace tidemark::base
