// A random workload for the tables of tables.h: several sessions at once, each with its own seed,
// each transaction made of random changes, savepoints, truncates, key changes and large values.
// Transactions that fail (deadlock, lost connection, duplicate key) are given up and the session
// goes on; a lost connection is opened again. Runs until it is stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/oracle/transaction_script.h"

namespace tidemark::oracle {

struct WorkloadOptions {
  std::string dsn;
  uint64_t seed = 1;
  int sessions = 4;
  ScriptOptions script;
  int large_every = 60;  // of the first session: more changes than a batch of the mirror; 0: none
  int pause_us_max = 0;  // between two transactions of a session
};

class Workload {
 public:
  /// Starts the sessions. The tables must exist.
  explicit Workload(WorkloadOptions options);
  /// Stops and joins them.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  /// Ends the sessions after their transactions.
  void Stop();
  /// Waits until that many more transactions have been done; false when the deadline passed.
  bool Do(int transactions, base::Deadline deadline);
  /// Without truncates and rewrites: a table that gets a new file all the time cannot be copied.
  void Calm(bool calm) { calm_ = calm; }
  int committed() const { return committed_; }
  int failed() const { return failed_; }

 private:
  void Run(int session, const std::stop_token& stop);

  WorkloadOptions options_;
  std::atomic<int> committed_{0}, failed_{0};
  std::atomic<bool> calm_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace tidemark::oracle
