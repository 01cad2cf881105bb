#include "capture/publishing_thread.h"

#include <utility>

namespace tidemark::capture {

PublishingThread::PublishingThread()
    : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void PublishingThread::Start(std::function<void()> work, std::function<void()> ended) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    ended_ = std::move(ended);
    busy_ = true;
  }
  changed_.notify_all();
}

void PublishingThread::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
  if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

bool PublishingThread::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void PublishingThread::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return work_ != nullptr; })) {
    auto work = std::exchange(work_, nullptr);
    const auto ended = std::exchange(ended_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    work = nullptr;
    lock.lock();
    failure_ = failure;
    busy_ = false;
    changed_.notify_all();
    lock.unlock();
    ended();
    lock.lock();
  }
}

}  // namespace tidemark::capture
