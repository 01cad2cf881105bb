#include "temporal/embedded_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "temporal/cluster_files.h"
#include "temporal/durability.h"
#include "temporal/passfile.h"
#include "temporal/server_account.h"

namespace tidemark::temporal {

namespace fs = std::filesystem;
using base::Account;
using base::ChildProcess;
using base::Deadline;
using base::Error;

namespace {

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kImmediateStopLimit = std::chrono::seconds(20);
constexpr auto kProgressEvery = std::chrono::seconds(10);
constexpr uintmax_t kLogBytesMax = uintmax_t{16} * 1024 * 1024;

[[noreturn]] void ThrowStopped() {
  throw Error(base::kQueryCanceled, "stopped while the store was starting");
}

/// A descriptor of a file, closed by the destructor.
class OpenFile {
 public:
  OpenFile(const fs::path& file, int flags) : fd_(::open(file.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) {
      throw Error(errno == EACCES ? base::kInsufficientPrivilege : base::kIoError,
                  fmt::format("could not open \"{}\": {}", file.string(), std::strerror(errno)));
    }
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

void MakeFolder(const StoreLayout& layout) {
  std::error_code failed;
  const bool is_new = !fs::exists(layout.folder, failed);
  fs::create_directories(layout.folder, failed);
  if (!failed && ::access(layout.folder.c_str(), W_OK | X_OK) != 0) {
    failed = {errno, std::generic_category()};
  }
  if (failed) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("cannot use folder \"{}\": {}", layout.folder.string(),
                            failed.message()))
        .Hint("Name a folder that you may write to with --data.");
  }
  // Others may pass through (the server's account must), but not look.
  if (is_new) ::chmod(layout.folder.c_str(), 0711);
}

/// The first and the eighth line of postmaster.pid: process and state; zero and empty if absent.
struct PidFile {
  pid_t pid = 0;
  std::string state;

  explicit PidFile(const fs::path& store) {
    std::ifstream in(store / "postmaster.pid");
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      if (number == 1) pid = std::atoi(line.c_str());
      if (number == 8) state = line.substr(0, line.find(' '));
    }
  }
  /// The process lives and works in `store`, so the file is not a relic with a number reused.
  bool IsServerOf(const fs::path& store) const {
    std::error_code none;
    return pid > 0 && fs::read_symlink(fmt::format("/proc/{}/cwd", pid), none) == store;
  }
};

void SignalAndWait(pid_t pid, int signal, Deadline deadline, const std::stop_token& stop) {
  const int pid_fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) return;
  ::kill(pid, signal);
  base::WaitReadable({pid_fd}, deadline, stop);
  ::close(pid_fd);
}

/// Takes the lock that every process of a server holds. A server that runs on after its tidemark
/// died is shut down: fast first, so that nothing needs recovery.
void TakeStore(const StoreLayout& layout, int lock, std::chrono::milliseconds limit,
               const std::stop_token& stop) {
  const auto is_free = [&] { return ::flock(lock, LOCK_EX | LOCK_NB) == 0; };
  const PidFile left(layout.store);
  const bool runs = left.IsServerOf(layout.store);
  if (runs) {
    spdlog::info("a store left running (process {}) is shut down first", left.pid);
    SignalAndWait(left.pid, SIGINT, Deadline::After(limit), stop);
    if (!is_free() && PidFile(layout.store).IsServerOf(layout.store)) {
      SignalAndWait(left.pid, SIGQUIT, Deadline::After(kImmediateStopLimit), stop);
    }
  }
  const auto patience = Deadline::After(runs ? kImmediateStopLimit : std::chrono::seconds(2));
  while (!is_free()) {
    if (stop.stop_requested()) ThrowStopped();
    if (patience.passed()) {
      throw Error(base::kObjectInUse,
                  fmt::format("another server works on \"{}\"", layout.store.string()))
          .Detail("It holds the lock file store.lock there, and cannot be seen from here.")
          .Hint("Stop it: perhaps it runs in another container on the same folder.");
    }
    base::WaitReadable({}, Deadline::After(kLook), stop);
  }
  // Nobody holds the lock, so a pid file can only be a relic; its number may be somebody else's.
  if (!runs && left.pid > 0) {
    std::error_code none;
    fs::remove(layout.store / "postmaster.pid", none);
  }
}

std::string LastLines(const fs::path& log, std::streamoff from) {
  std::ifstream in(log);
  in.seekg(0, std::ios::end);
  const std::streamoff end = in.tellg();
  in.seekg(std::max(from, end - 1500));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void AwaitReady(const StoreLayout& layout, ChildProcess& server, std::streamoff log_start,
                std::chrono::milliseconds limit, const std::stop_token& stop) {
  const auto deadline = Deadline::After(limit);
  auto next_word = Deadline::After(kProgressEvery);
  for (;;) {
    if (const auto ended = server.Wait(Deadline::After(kLook), stop)) {
      throw Error(base::kSystemError,
                  fmt::format("the store did not start ({})", ended->ToString()))
          .Detail(LastLines(layout.log, log_start))
          .Hint(fmt::format("Its whole log is in {}.", layout.log.string()));
    }
    const PidFile file(layout.store);
    if (file.pid == server.pid() && file.state == "ready") return;
    if (stop.stop_requested()) ThrowStopped();
    if (deadline.passed()) {
      throw Error(base::kCannotConnectNow, "the store did not become ready in time")
          .Detail(LastLines(layout.log, log_start));
    }
    if (next_word.passed()) {
      spdlog::info("the store is still starting: {}", LastLines(layout.log, log_start));
      next_word = Deadline::After(kProgressEvery);
    }
  }
}

/// Ends a server: fast, at the limit immediately.
void ShutDown(ChildProcess& server, std::chrono::milliseconds limit) {
  server.Signal(SIGINT);
  if (server.Wait(Deadline::After(limit))) return;
  spdlog::warn("the store did not shut down in time; it will recover at the next start");
  server.Signal(SIGQUIT);
  server.Wait(Deadline::After(kImmediateStopLimit));
}

ChildProcess StartServer(const StoreLayout& layout, const EmbeddedStore::Options& options,
                         const ServerBinaries& binaries, const Account& account,
                         const std::stop_token& stop) {
  const OpenFile lock(layout.lock, O_RDWR | O_CREAT);
  TakeStore(layout, lock.fd(), options.stop_limit, stop);
  MakePrivateFolder(account, layout.socket_folder);
  StoreClusterSettings(layout, binaries, account);
  std::error_code none;
  if (fs::file_size(layout.log, none) > kLogBytesMax && !none) {
    fs::rename(layout.log, layout.log.string() + ".1", none);
  }
  const OpenFile log(layout.log, O_WRONLY | O_CREAT | O_APPEND);
  const auto log_start = static_cast<std::streamoff>(::lseek(log.fd(), 0, SEEK_END));
  auto command = AsServer(
      account, {(binaries.folder / "postgres").string(), "-D", layout.store.string()});
  command.output_fd = log.fd();
  command.kept_fds = {lock.fd()};
  auto server = ChildProcess::Start(command);
  try {
    AwaitReady(layout, server, log_start, options.start_limit, stop);
  } catch (const Error&) {
    ShutDown(server, options.stop_limit);
    throw;
  }
  return server;
}

}  // namespace

EmbeddedStore EmbeddedStore::Start(const Options& options, std::stop_token stop) {
  StoreLayout layout(options.folder);
  if (IsOnVolatileFileSystem(layout.folder)) {
    RequireDurable({.volatile_folder = layout.folder.string()}, options.allow_volatile_store);
  }
  const auto major = ClusterMajor(layout);
  const auto binaries = FindServerBinaries(major);
  auto account = FindServerAccount();
  MakeFolder(layout);
  RequireCanEnter(account, layout.folder);
  if (!major) {
    MakeCluster(layout, binaries, account, stop);
  } else if (!PasswordOf(layout.owner_passfile, kStoreOwner)) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("the password of the store is missing: \"{}\"",
                            layout.owner_passfile.string()))
        .Hint("Put the file back from a backup of the folder.");
  }
  auto server = StartServer(layout, options, binaries, account, stop);
  EmbeddedStore store(options, std::move(layout), std::move(account), std::move(server));
  auto connection =
      store.ConnectForMaintenance(Deadline::After(std::chrono::seconds(30)), stop);
  RequireDurable(LoadDurability(connection, store.layout_.store), options.allow_volatile_store);
  spdlog::info("the store is ready (process {})", store.pid());
  return store;
}

EmbeddedStore::~EmbeddedStore() { Stop(); }

pg::Connection EmbeddedStore::ConnectForMaintenance(Deadline deadline, std::stop_token stop) const {
  return pg::Connection::Open({.dsn = layout_.Dsn("template1")}, deadline, std::move(stop));
}

void EmbeddedStore::PrepareDatabase(const DatabaseShape& shape, Deadline deadline,
                                    std::stop_token stop) {
  auto maintenance = ConnectForMaintenance(deadline, std::move(stop));
  // initdb made "postgres", empty and sorted by bytes; it makes way for a source of that name.
  if (shape.name == "postgres" && !fs::exists(layout_.database)) {
    maintenance.Execute("DROP DATABASE IF EXISTS postgres");
  }
  EnsureDatabase(maintenance, shape);
  WriteFileWhole(layout_.database, shape.name + "\n", 0644);
}

bool EmbeddedStore::HasEnded() {
  return server_.Wait(Deadline::After(std::chrono::milliseconds(0))).has_value();
}

void EmbeddedStore::Restart(std::stop_token stop) {
  const auto binaries = FindServerBinaries(ClusterMajor(layout_));
  server_ = StartServer(layout_, options_, binaries, account_, stop);
}

void EmbeddedStore::Stop() noexcept {
  if (server_.pid() <= 0) return;
  try {
    if (!server_.Wait(Deadline::After(std::chrono::milliseconds(0)))) {
      ShutDown(server_, options_.stop_limit);
      spdlog::info("the store has stopped");
    }
    server_.Release();
  } catch (const std::exception& error) {
    spdlog::error("could not stop the store: {}", error.what());
  }
}

}  // namespace tidemark::temporal
