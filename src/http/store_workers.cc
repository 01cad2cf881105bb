#include "http/store_workers.h"

#include <optional>

#include "http/store_connection.h"

namespace tidemark::http {

namespace {

using base::Error;

/// True when it answers; it is outside any transaction then.
bool Answers(pg::Connection& store, const std::stop_token& stop) {
  try {
    store.SetLimits(kStoreConnectLimit, stop);
    if (store.InTransaction()) store.Execute("ROLLBACK");
    store.Execute("SELECT");
    return true;
  } catch (const Error&) {
    return false;  // a new one tells why
  }
}

}  // namespace

StoreWorkers::StoreWorkers(std::string store_dsn, size_t threads,
                           std::chrono::milliseconds statement_limit)
    : store_dsn_(std::move(store_dsn)), statement_limit_(statement_limit) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
  }
}

StoreWorkers::~StoreWorkers() {
  for (auto& thread : threads_) thread.request_stop();
}

void StoreWorkers::Submit(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back({std::move(job), Clock::now()});
  }
  wakeup_.notify_one();
}

std::optional<Error> StoreWorkers::FoundAwayAfter(Clock::time_point since) {
  const std::scoped_lock lock(mutex_);
  if (!away_ || away_at_ < since) return std::nullopt;
  return away_;
}

void StoreWorkers::Run(const Waiting& next, std::optional<pg::Connection>& store,
                       const std::stop_token& stop) {
  const Error none(base::kCannotConnect, "the store is away");
  if (store && Answers(*store, stop)) {
    store->SetLimits(statement_limit_, stop);
    return next.job(&*store, none);
  }
  store.reset();
  // Whoever waited while a connection could not be made need not wait for another try.
  if (const auto away = FoundAwayAfter(next.since)) return next.job(nullptr, *away);
  try {
    store = OpenCurrentStore(store_dsn_, stop);
    store->SetLimits(statement_limit_, stop);
  } catch (Error& error) {
    store.reset();
    error.AddContext("connecting to the store");
    {
      const std::scoped_lock lock(mutex_);
      away_ = error;
      away_at_ = Clock::now();
    }
    return next.job(nullptr, error);
  }
  next.job(&*store, none);
}

void StoreWorkers::Work(const std::stop_token& stop) {
  std::optional<pg::Connection> store;
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!wakeup_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
    if (stop.stop_requested()) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Run(next, store, stop);
  }
}

}  // namespace tidemark::http
