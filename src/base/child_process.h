// A process that we start and must end: fork and exec without a shell, as another account if asked,
// and waits with deadlines through a pidfd. Not a pipe to talk through. One thread per object;
// Start() may be called while other threads run. Manual: fork(2), pidfd_open(2), prctl(2).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"

namespace tidemark::base {

/// An account of the operating system, as far as a process needs it to run under it.
struct Account {
  std::string name, home;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  /// nullopt when there is no account of that name.
  static std::optional<Account> Find(const std::string& name);
  /// The account this process runs as.
  static Account Own();
};

/// How a process ended.
struct ExitStatus {
  int code = 0;    // exit code, when signal is 0
  int signal = 0;  // the signal that ended it
  bool ok() const { return code == 0 && signal == 0; }
  /// "exit code 3" or "signal 9".
  std::string ToString() const;
};

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command;          // [0] is an absolute path
    std::vector<std::string> environment;      // NAME=value, the whole of it
    std::optional<Account> account;            // needs root
    std::filesystem::path folder = "/";        // where it starts
    int output_fd = -1;                        // its stdout and stderr; -1: ours
    std::vector<int> kept_fds;                 // stay open in it, under the same numbers
    /// It gets SIGTERM when the thread that started it ends, so even after a SIGKILL of ours.
    bool dies_with_parent = false;
  };
  /// Starts it in its own session, with default signals and nothing on stdin. Throws 58000 when it
  /// cannot be executed.
  static ChildProcess Start(const Options& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  /// A process still running is killed (SIGKILL) and reaped.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  /// Readable once the process has ended.
  int pid_fd() const { return pid_fd_; }
  /// How it ended; nullopt when it still runs at the deadline or when `stop` was requested.
  std::optional<ExitStatus> Wait(Deadline deadline, const std::stop_token& stop = {});
  /// Does nothing once the process has been reaped.
  void Signal(int signal) noexcept;
  /// Gives the process up: it goes on without us.
  void Release() noexcept;

 private:
  ChildProcess(pid_t pid, int pid_fd) : pid_(pid), pid_fd_(pid_fd) {}
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  std::optional<ExitStatus> ended_;
};

/// Runs a command to its end. What it wrote goes to `output` (at most 64 kB are kept, the rest is
/// dropped). It is killed at the deadline or on stop; throws 57014 then.
ExitStatus RunToEnd(ChildProcess::Options options, std::string* output, Deadline deadline,
                    const std::stop_token& stop = {});

/// Waits until one of `fds` is readable, the deadline passed or `stop` was requested. fds may
/// contain -1, which is never ready. True when one is readable.
bool WaitReadable(const std::vector<int>& fds, Deadline deadline, const std::stop_token& stop);

}  // namespace tidemark::base
