// A random workload for the tables of tables.h: several sessions at once, each with its own seed,
// each transaction made of random changes, savepoints, truncates, key changes and large values.
// Transactions that fail (deadlock, lost connection, duplicate key) are given up and the session
// goes on; a lost connection is opened again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace tidemark::oracle {

struct WorkloadOptions {
  std::string dsn;
  uint64_t seed = 1;
  int sessions = 4;
  int transactions = 300;          // of each session; 0: until stopped
  bool large_transactions = true;  // beyond one batch of the mirror: of the first session
  int pause_us_max = 0;            // between two transactions of a session
};

class Workload {
 public:
  /// Starts the sessions. The tables must exist.
  explicit Workload(WorkloadOptions options);
  /// Stops and joins them.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  /// Waits until all sessions have ended; false when the deadline passed.
  bool Join(base::Deadline deadline);
  /// Ends the sessions after their transaction.
  void Stop();
  int committed() const { return committed_; }
  int failed() const { return failed_; }

 private:
  void Run(int session, const std::stop_token& stop);

  WorkloadOptions options_;
  std::atomic<int> committed_{0}, failed_{0}, running_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace tidemark::oracle
