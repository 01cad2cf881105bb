#include "source/adbc/driver_thread.h"

#include "base/error.h"

namespace tidemark::source {

namespace {

// One call and what became of it, shared by both threads.
struct Ticket {
  std::mutex mutex;
  std::condition_variable_any ended;
  bool done = false;
  std::exception_ptr error;
};

constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(1);

}  // namespace

DriverThread::DriverThread() : worker_([this](const std::stop_token& stop) { Work(stop); }) {}

DriverThread::~DriverThread() {
  worker_.request_stop();
  worker_.join();
}

void DriverThread::Work(const std::stop_token& stop) {
  for (;;) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      // What is queued still runs after a stop: it gives things back.
      if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); }) && queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.erase(queue_.begin());
    }
    next();
  }
}

void DriverThread::Post(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(call));
  changed_.notify_all();
}

void DriverThread::RunTask(std::function<void()> task, const Limit& limit,
                           const std::function<void()>& interrupt) {
  limit.Check();
  const auto ticket = std::make_shared<Ticket>();
  Post([ticket, task = std::move(task)] {
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(ticket->mutex);
    ticket->error = error;
    ticket->done = true;
    ticket->ended.notify_all();
  });
  std::unique_lock lock(ticket->mutex);
  while (!ticket->done) {
    ticket->ended.wait_for(lock, limit.stop, limit.deadline.left(kLongestWait),
                           [&] { return ticket->done; });
    if (ticket->done) break;
    if (!limit.stop.stop_requested() && !limit.deadline.passed()) continue;
    lock.unlock();
    interrupt();
    limit.Check();  // throws
  }
  if (ticket->error) std::rethrow_exception(ticket->error);
}

}  // namespace tidemark::source
