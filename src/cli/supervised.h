// A half of tidemark (`follow`, `serve`) as a child process that is started again when it crashes,
// later each time it crashes soon. Not the store, which supervises itself less eagerly
// (temporal/embedded_store.h). One thread, the one that made it.
//
//   running ──ended, may come back──► waiting (1 s, doubling to 30 s) ──due──► running
//      └──ended for good (usage, refused)──► given up
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"

namespace tidemark::cli {

class Supervised {
 public:
  /// Starts `tidemark NAME arguments…` from this very program.
  Supervised(std::string name, std::vector<std::string> arguments,
             std::vector<std::string> environment);

  /// Reaps and restarts as due; call whenever pid_fd() is readable or due() has come.
  void Tend();
  /// Readable when the process has ended; -1 while there is none.
  int pid_fd() const;
  /// When Tend() has something to do without anybody's doing.
  base::Deadline due() const { return due_; }
  /// The exit code with which it gave up, if it has.
  std::optional<int> given_up() const { return given_up_; }
  /// Does nothing while there is no process.
  void Signal(int signal);
  /// SIGTERM, and SIGKILL at the limit.
  void Stop(std::chrono::milliseconds limit);

 private:
  void Start();

  std::string name_;
  std::vector<std::string> arguments_, environment_;
  std::optional<base::ChildProcess> process_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::milliseconds delay_{0};
  base::Deadline due_ = base::Deadline::Never();
  std::optional<int> given_up_;
};

}  // namespace tidemark::cli
