#include "tests/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tidemark::tests {

namespace fs = std::filesystem;

fs::path ServerBinaries() {
  if (const char* chosen = std::getenv("TIDEMARK_PG_BINDIR")) return chosen;
  fs::path best;
  int best_version = 0;
  if (fs::exists("/usr/lib/postgresql")) {
    for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql")) {
      const int version = std::atoi(entry.path().filename().c_str());
      if (version >= 15 && version > best_version && fs::exists(entry.path() / "bin/postgres")) {
        best = entry.path() / "bin";
        best_version = version;
      }
    }
  }
  if (best.empty()) throw std::runtime_error("no PostgreSQL 15 or newer found: run tools/setup");
  return best;
}

fs::path SourceBinaries() {
  const char* chosen = std::getenv("TIDEMARK_SOURCE_BINDIR");
  return chosen != nullptr ? fs::path(chosen) : ServerBinaries();
}

std::vector<std::string> AsServerUser(std::vector<std::string> command) {
  if (::geteuid() == 0) {
    command.insert(command.begin(), {"runuser", "-u", "postgres", "--"});
  }
  return command;
}

// Not by fork(): its handlers may belong to libraries that the end of the program has closed
// already.
int Run(const std::vector<std::string>& command, std::string* output) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_fds[1]);
  if (error != 0) {
    ::close(pipe_fds[0]);
    if (output != nullptr) *output = "could not run " + command[0];
    return 127;
  }
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe_fds[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(pipe_fds[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (output != nullptr) *output = text;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

namespace {

void Must(const std::vector<std::string>& command) {
  std::string output;
  if (Run(command, &output) != 0) {
    throw std::runtime_error(fmt::format("{} failed: {}", fmt::join(command, " "), output));
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "tidemark-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = name;
  if (::geteuid() == 0) {
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error("no user postgres");
    if (::chown(name.c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("chown");
    fs::permissions(path_, fs::perms::owner_all | fs::perms::others_exec | fs::perms::group_exec);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Cluster::Cluster(std::vector<std::string> settings, bool durable, fs::path binaries)
    : binaries_(std::move(binaries)) {
  std::string name = (fs::temp_directory_path() / "tidemark-pg-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  directory_ = name;
  if (::geteuid() == 0) {
    const passwd* user = ::getpwnam("postgres");
    if (user == nullptr) throw std::runtime_error("no user postgres");
    if (::chown(name.c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("chown");
  }
  const auto data = directory_ / "data";
  Must(AsServerUser({(binaries_ / "initdb").string(), "-D", data.string(), "-A", "trust",
                     "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                     "--no-instructions"}));
  std::ofstream conf(data / "postgresql.conf", std::ios::app);
  conf << "listen_addresses = ''\nunix_socket_directories = '" << name << "'\n"
       << "wal_level = logical\nmax_wal_senders = 20\nmax_replication_slots = 20\n"
       << "max_connections = 60\nshared_buffers = 128MB\nmax_prepared_transactions = 10\n"
       << "lc_messages = 'C'\nlogging_collector = off\n";
  if (!durable) conf << "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n";
  constexpr std::string_view kPort = "port = ";
  for (const auto& line : settings) {
    conf << line << "\n";
    if (line.starts_with(kPort)) port_ = std::stoi(line.substr(kPort.size()));
  }
  conf.close();
  Start();
}

Cluster::~Cluster() {
  try {
    Stop("immediate");
  } catch (const std::exception&) {
    // The folder goes all the same.
  }
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void Cluster::Start() {
  Must(AsServerUser({(binaries_ / "pg_ctl").string(), "-D", (directory_ / "data").string(),
                     "-l", (directory_ / "log").string(), "-w", "-t", "60", "start"}));
  running_ = true;
}

void Cluster::Stop(const std::string& mode) {
  if (!running_) return;
  running_ = false;
  Must(AsServerUser({(binaries_ / "pg_ctl").string(), "-D", (directory_ / "data").string(),
                     "-m", mode, "-w", "stop"}));
}

std::string Cluster::Dsn(const std::string& database) const {
  return fmt::format("host={} port={} user=postgres dbname={}", directory_.string(), port_,
                     database);
}

pg::Connection Cluster::Connect(const std::string& database) const {
  return pg::Connection::Open({.dsn = Dsn(database)},
                              base::Deadline::After(std::chrono::seconds(20)));
}

std::string Cluster::CreateDatabase(const std::string& name) {
  Connect().Execute("CREATE DATABASE " + base::QuoteIdentifier(name));
  return Dsn(name);
}

Cluster& Cluster::Shared() {
  static Cluster cluster;
  return cluster;
}

Cluster& Cluster::SharedSource() {
  if (std::getenv("TIDEMARK_SOURCE_BINDIR") == nullptr) return Shared();
  static Cluster cluster({}, false, SourceBinaries());
  return cluster;
}

}  // namespace tidemark::tests
