// The threads that talk to the store for the http server, one connection each, opened at first use
// and again after a loss. A job gets a connection that has just answered, or the reason why there
// is none. Submit from any thread; jobs run on the workers, in the order they came as far as
// workers are free.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "pg/connection.h"

namespace tidemark::http {

class StoreWorkers {
 public:
  /// `store` is nullptr while the store is away; `away` says why then. Must not throw.
  using Job = std::function<void(pg::Connection* store, const base::Error& away)>;

  /// Each statement of a job may take `statement_limit`.
  StoreWorkers(std::string store_dsn, size_t threads, std::chrono::milliseconds statement_limit);
  /// Cuts running statements short (57014) and drops the jobs that wait.
  ~StoreWorkers();
  StoreWorkers(const StoreWorkers&) = delete;
  StoreWorkers& operator=(const StoreWorkers&) = delete;

  void Submit(Job job);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Job job;
    Clock::time_point since;
  };
  void Work(const std::stop_token& stop);
  void Run(const Waiting& next, std::optional<pg::Connection>& store, const std::stop_token& stop);
  /// Why the store was away the last time somebody asked, if that was after `since`.
  std::optional<base::Error> FoundAwayAfter(Clock::time_point since);

  const std::string store_dsn_;
  const std::chrono::milliseconds statement_limit_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any wakeup_;
  std::deque<Waiting> waiting_;
  std::optional<base::Error> away_;
  Clock::time_point away_at_;
  std::vector<std::jthread> threads_;  // last: they end before the rest goes
};

}  // namespace tidemark::http
