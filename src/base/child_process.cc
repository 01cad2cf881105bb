#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tidemark::base {

namespace {

constexpr size_t kOutputBytesMax = 64 * 1024;

/// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

Account FromPasswd(const passwd& user) {
  Account account;
  account.name = user.pw_name;
  account.home = user.pw_dir;
  account.uid = user.pw_uid;
  account.gid = user.pw_gid;
  int count = 64;
  account.groups.resize(static_cast<size_t>(count));
  if (::getgrouplist(user.pw_name, user.pw_gid, account.groups.data(), &count) < 0) {
    account.groups.resize(static_cast<size_t>(count));
    ::getgrouplist(user.pw_name, user.pw_gid, account.groups.data(), &count);
  }
  account.groups.resize(static_cast<size_t>(std::max(count, 0)));
  return account;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What happens between fork and exec; only async-signal-safe calls. Returns only on failure, with
/// errno set.
void BecomeChild(const ChildProcess::Options& options, char* const* argv, char* const* envp,
                 int report_fd, pid_t parent) {
  ::setsid();
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0) return;
  if (options.output_fd >= 0) {
    if (::dup2(options.output_fd, 1) < 0 || ::dup2(options.output_fd, 2) < 0) return;
  }
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : options.kept_fds) {
    if (::fcntl(fd, F_SETFD, 0) < 0) return;
  }
  ::fcntl(report_fd, F_SETFD, FD_CLOEXEC);
  if (options.account) {
    const Account& account = *options.account;
    if (::setgroups(account.groups.size(), account.groups.data()) != 0 ||
        ::setgid(account.gid) != 0 || ::setuid(account.uid) != 0) {
      return;
    }
  }
  if (::chdir(options.folder.c_str()) != 0) return;
  if (options.dies_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(0);
  }
  ::execve(argv[0], argv, envp);
}

ExitStatus FromWait(int status) {
  return WIFSIGNALED(status) ? ExitStatus{.code = 0, .signal = WTERMSIG(status)}
                             : ExitStatus{.code = WEXITSTATUS(status), .signal = 0};
}

}  // namespace

std::optional<Account> Account::Find(const std::string& name) {
  const passwd* user = ::getpwnam(name.c_str());
  if (user == nullptr) return std::nullopt;
  return FromPasswd(*user);
}

Account Account::Own() {
  if (const passwd* user = ::getpwuid(::geteuid())) return FromPasswd(*user);
  // An account without an entry, as containers often have.
  return {.name = std::to_string(::geteuid()), .home = "/", .uid = ::geteuid(),
          .gid = ::getegid(), .groups = {}};
}

std::string ExitStatus::ToString() const {
  return signal != 0 ? fmt::format("signal {}", signal) : fmt::format("exit code {}", code);
}

ChildProcess ChildProcess::Start(const Options& options) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) {
    throw Error(kSystemError, fmt::format("could not create a pipe: {}", std::strerror(errno)));
  }
  Fd report_in(report[0]), report_out(report[1]);
  const auto argv = Pointers(options.command);
  const auto envp = Pointers(options.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    throw Error(kSystemError, fmt::format("could not fork: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    BecomeChild(options, argv.data(), envp.data(), report_out.get(), parent);
    const int why = errno;
    (void)!::write(report_out.get(), &why, sizeof why);
    ::_exit(127);
  }
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const int pid_fd_error = errno;
  ChildProcess child(pid, pid_fd);
  report_out.Close();
  int why = 0;
  ssize_t got;
  while ((got = ::read(report_in.get(), &why, sizeof why)) < 0 && errno == EINTR) {
  }
  if (got > 0) {
    throw Error(kSystemError, fmt::format("could not run \"{}\": {}", options.command.front(),
                                          std::strerror(why)));
  }
  if (pid_fd < 0) {
    throw Error(kSystemError,
                fmt::format("could not watch a process: {}", std::strerror(pid_fd_error)))
        .Hint("Linux 5.3 or newer is needed.");
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::exchange(other.pid_fd_, -1)),
      ended_(other.ended_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pid_fd_, other.pid_fd_);
  std::swap(ended_, other.ended_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (pid_fd_ >= 0) ::close(pid_fd_);
}

std::optional<ExitStatus> ChildProcess::Wait(Deadline deadline, const std::stop_token& stop) {
  if (ended_) return ended_;
  if (!WaitReadable({pid_fd_}, deadline, stop)) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) ended_ = FromWait(status);
  return ended_;
}

void ChildProcess::Signal(int signal) noexcept {
  if (pid_ > 0 && !ended_) ::kill(pid_, signal);
}

void ChildProcess::Release() noexcept {
  pid_ = -1;
  ended_.reset();
}

bool WaitReadable(const std::vector<int>& fds, Deadline deadline, const std::stop_token& stop) {
  Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback ring(stop, [&bell] {
    const uint64_t one = 1;
    (void)!::write(bell.get(), &one, sizeof one);
  });
  std::vector<pollfd> watched;
  for (const int fd : fds) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  watched.push_back({.fd = bell.get(), .events = POLLIN, .revents = 0});
  for (;;) {
    const auto left = deadline.left(std::chrono::hours(1));
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready > 0) {
      return std::any_of(watched.begin(), watched.end() - 1,
                         [](const pollfd& one) { return one.revents != 0; });
    }
    if (stop.stop_requested()) return false;
    if (ready == 0 && deadline.passed()) return false;
  }
}

ExitStatus RunToEnd(ChildProcess::Options options, std::string* output, Deadline deadline,
                    const std::stop_token& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(kSystemError, fmt::format("could not create a pipe: {}", std::strerror(errno)));
  }
  Fd from(ends[0]), to(ends[1]);
  options.output_fd = to.get();
  auto child = ChildProcess::Start(options);
  to.Close();
  char buffer[4096];
  while (WaitReadable({from.get()}, deadline, stop)) {
    const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    if (output != nullptr && output->size() < kOutputBytesMax) {
      output->append(buffer, static_cast<size_t>(got));
    }
  }
  if (const auto status = child.Wait(deadline, stop)) return *status;
  throw Error(kQueryCanceled,
              fmt::format("\"{}\" did not end in time", options.command.front()));
}

}  // namespace tidemark::base
