// Readers that ask the store for the sum over account_a and account_b all the time: the latest, at
// random instants, at random positions. No transaction changes it, so any other answer is a
// transaction half visible. They live through restarts of the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pg/connection.h"

namespace tidemark::oracle {

class SumReaders {
 public:
  /// Starts `readers` threads; they wait for the first basis.
  SumReaders(std::string store_dsn, int readers, uint64_t seed);
  ~SumReaders();
  SumReaders(const SumReaders&) = delete;
  SumReaders& operator=(const SumReaders&) = delete;

  /// Ends them; what was wrong, one line each (at most 20).
  std::vector<std::string> Stop();
  int64_t answers() const { return answers_; }

 private:
  void Run(uint64_t seed, const std::stop_token& stop);
  void Ask(pg::Connection& store, uint64_t choice);
  void Expect(pg::Connection& store, const std::string& sql);

  std::string store_dsn_;
  std::atomic<int64_t> answers_{0};
  std::mutex mutex_;
  std::vector<std::string> wrong_;
  std::vector<std::jthread> threads_;
};

}  // namespace tidemark::oracle
