// The follower as a child process that can be killed at a kill point or at any time. Start it from
// the test's main thread: it ends with the thread that started it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/clock.h"

namespace tidemark::crash {

class FollowerProcess {
 public:
  /// No `batch_changes`: as many as a mirror applies together by itself.
  FollowerProcess(std::string name, std::string source_dsn, std::string store_dsn,
                  std::optional<size_t> batch_changes);
  ~FollowerProcess();
  FollowerProcess(const FollowerProcess&) = delete;
  FollowerProcess& operator=(const FollowerProcess&) = delete;

  /// `kill_point` as TIDEMARK_KILL_POINT; empty: it lives.
  void Start(const std::string& kill_point = "");
  /// True when it was killed (by its kill point) before the deadline.
  bool WaitKilled(base::Deadline deadline);
  void Kill();
  void Signal(int signal) { process_->Signal(signal); }
  /// SIGTERM, and an end within 30 s with exit code 0.
  bool Stop();
  bool running() {
    return process_ && !process_->Wait(base::Deadline::After(std::chrono::milliseconds(0)));
  }
  pid_t pid() const { return process_->pid(); }
  /// What it has logged so far.
  std::string Log() const;

 private:
  std::vector<std::string> command_;
  std::filesystem::path log_;
  int log_fd_ = -1;
  std::optional<base::ChildProcess> process_;
};

}  // namespace tidemark::crash
