// tidemark up: embedded store, capture and gateway in one, in the foreground. Supervises the store,
// `follow` and `serve` as child processes and shares nothing with them but the store. SIGHUP stops
// it where it has a terminal, which is then gone; elsewhere it goes to `serve`.
//
//   refuse (port, folder, preflight; nothing created) → store → database, schema, reader
//     → serve, follow → watch until a signal → stop serve, follow, store, in this order
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "base/child_process.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/dataset_plan.h"
#include "cli/first_copy.h"
#include "cli/folder_lock.h"
#include "cli/listen_address.h"
#include "cli/psql_line.h"
#include "cli/servers.h"
#include "cli/source_check.h"
#include "cli/stop_signals.h"
#include "cli/supervised.h"
#include "temporal/durability.h"
#include "temporal/embedded_store.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using base::Deadline;
using base::Error;
using temporal::EmbeddedStore;
using temporal::StoreLayout;

constexpr auto kConnectLimit = std::chrono::seconds(30);
constexpr auto kPortPatience = std::chrono::seconds(6);
constexpr auto kLookEvery = std::chrono::milliseconds(300);
constexpr auto kServeStopLimit = std::chrono::seconds(10);
constexpr auto kFollowStopLimit = std::chrono::seconds(30);

void RequireUsable(const Config& config) {
  RequireServable(config);
  if (config.mirrors.empty()) {
    throw Error(base::kConfigFileError, "there is nothing to mirror")
        .Hint("Name a PostgreSQL with --source, or declare a mirror in tidemark.yaml.");
  }
}

/// SIGHUP as something to wait for.
class Hangups {
 public:
  explicit Hangups(StopSignals& signals)
      : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), action_(signals, [this] {
          const uint64_t one = 1;
          if (::write(fd_, &one, sizeof one) < 0) return;  // it is readable already
        }) {}
  ~Hangups() { ::close(fd_); }
  Hangups(const Hangups&) = delete;
  Hangups& operator=(const Hangups&) = delete;
  /// Readable once one has come.
  int fd() const { return fd_; }
  /// True when one has come since the last call.
  bool Take() {
    uint64_t count = 0;
    return ::read(fd_, &count, sizeof count) == sizeof count;
  }

 private:
  int fd_;
  HangupAction action_;
};

bool HasTerminal() {
  const int terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

/// The ports must be free. In a folder that was used before, the servers of a tidemark that was
/// killed just now may still be leaving.
void AwaitFreePorts(const Config& config, const StoreLayout& layout, const std::stop_token& stop) {
  const bool used_before = std::filesystem::exists(layout.folder / "lock");
  const auto patience = Deadline::After(used_before ? kPortPatience : std::chrono::seconds(0));
  for (;;) {
    try {
      return RequireFreePorts(config);
    } catch (const Error& error) {
      if (error.state() != base::kObjectInUse || patience.passed() || stop.stop_requested()) throw;
    }
    base::WaitReadable({}, Deadline::After(kLookEvery), stop);
  }
}

/// What preflight found. A store that is there serves what it has even while its source is away.
std::vector<CheckedMirror> CheckSources(const Config& config, const StoreLayout& layout,
                                        const std::stop_token& stop) {
  try {
    return CheckMirrors(config, nullptr, stop);
  } catch (const Error& error) {
    const bool has_store = config.store_dsn || std::filesystem::exists(layout.database);
    if (!has_store || !error.IsConnectionLoss() || stop.stop_requested()) throw;
    spdlog::warn("the source cannot be reached; what is stored is served meanwhile: {}",
                 error.what());
    return {};
  }
}

void PrepareDatabase(EmbeddedStore& store, const std::vector<CheckedMirror>& checked,
                     const std::stop_token& stop) {
  if (checked.empty()) return;  // the source is away, so the database has been made before
  const auto& server = checked.front().report.server;
  store.PrepareDatabase({.name = server.database,
                         .provider = server.locale_provider.empty() ? 'c'
                                                                    : server.locale_provider.front(),
                         .collate = server.collate,
                         .character_type = server.ctype,
                         .locale = server.locale},
                        Deadline::After(kConnectLimit), stop);
}

/// Brings the store to this version, with the role `reader`. Returns the database's name.
std::string PrepareStore(const std::string& dsn, const Config& config, const StoreLayout& layout,
                         const std::stop_token& stop) {
  auto store = temporal::OpenStore(dsn, Deadline::After(kConnectLimit), stop);
  if (config.store_dsn) {
    temporal::RequireDurable(temporal::LoadDurability(store), config.allow_volatile_store);
  }
  temporal::Migrate(store);
  temporal::EnsureReader(store, {.passfile = layout.reader_passfile,
                                 .hosts = PassfileHosts(config.gateway),
                                 .port = config.gateway.port});
  return store.Value("SELECT pg_catalog.current_database()");
}

/// Our environment with what the command line said; secrets do not go through argument lists.
std::vector<std::string> ChildEnvironment(const Invocation& invocation, const Config& config,
                                          const StoreLayout& layout) {
  std::map<std::string, std::string> variables;
  for (char** one = ::environ; *one != nullptr; ++one) {
    const std::string text = *one;
    if (const auto equals = text.find('='); equals != std::string::npos) {
      variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  variables["TIDEMARK_DATA"] = layout.folder.string();
  variables["TIDEMARK_PORT"] = std::to_string(config.gateway.port);
  variables["TIDEMARK_HTTP_PORT"] = std::to_string(config.http.port);
  if (invocation.no_http) variables["TIDEMARK_NO_HTTP"] = "true";
  variables["TIDEMARK_STORE"] = config.store_dsn.value_or("embedded");
  if (!invocation.config_file.empty()) variables["TIDEMARK_CONFIG"] = invocation.config_file;
  if (!invocation.source.empty()) variables["TIDEMARK_SOURCE"] = invocation.source;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

/// Watches store and halves until a stop; the exit code of a half that gave up otherwise.
ExitCode Watch(const Invocation& invocation, const Config& config, const StoreLayout& layout,
               EmbeddedStore* store, const std::string& dsn, const std::string& database) {
  const auto environment = ChildEnvironment(invocation, config, layout);
  Supervised serve("serve", {}, environment);
  Supervised follow("follow", {}, environment);
  FirstCopy first_copy(dsn, PlanLive(config, "").size());
  std::optional<Hangups> hangups;
  if (!HasTerminal()) hangups.emplace(*invocation.signals);
  bool readable = false;
  auto result = ExitCode::kDone;
  try {
    while (!invocation.stop.stop_requested()) {
      auto until = serve.due().Min(follow.due());
      if (!readable) until = until.Min(Deadline::After(kLookEvery));
      base::WaitReadable({serve.pid_fd(), follow.pid_fd(), store ? store->pid_fd() : -1,
                          hangups ? hangups->fd() : -1},
                         until, invocation.stop);
      if (invocation.stop.stop_requested()) break;
      if (hangups && hangups->Take()) serve.Signal(SIGHUP);
      if (store != nullptr && store->HasEnded()) {
        spdlog::error("the store has ended unasked; it is started again");
        store->Restart(invocation.stop);
      }
      serve.Tend();
      follow.Tend();
      if (const auto code = follow.given_up() ? follow.given_up() : serve.given_up()) {
        result = static_cast<ExitCode>(*code);
        break;
      }
      if (!readable && first_copy.Look(invocation.stop) && IsAnswered(config.gateway)) {
        readable = true;
        fmt::print("the mirror is readable: {}\n{}\n", first_copy.summary(),
                   PsqlLine(config.gateway, layout.reader_passfile, "reader", database));
        // Port 0 is any free one: serve says in the log which one it has.
        if (!config.http_serving.off && config.http.port != 0) {
          fmt::print("{}/v1/status\n", HttpUrl(config.http));
        }
        std::fflush(stdout);
      }
    }
  } catch (...) {
    serve.Stop(kServeStopLimit);
    follow.Stop(kFollowStopLimit);
    throw;
  }
  serve.Stop(kServeStopLimit);
  follow.Stop(kFollowStopLimit);
  return result;
}

ExitCode Run(const Invocation& invocation, const Config& config, const StoreLayout& layout,
             const std::vector<CheckedMirror>& checked) {
  const FolderLock lock(layout.folder);
  std::optional<EmbeddedStore> store;
  if (!config.store_dsn) {
    store.emplace(EmbeddedStore::Start({.folder = layout.folder,
                                        .allow_volatile_store = config.allow_volatile_store},
                                       invocation.stop));
    PrepareDatabase(*store, checked, invocation.stop);
  }
  const auto dsn = config.store_dsn ? *config.store_dsn : layout.Dsn();
  const auto database = PrepareStore(dsn, config, layout, invocation.stop);
  return Watch(invocation, config, layout, store ? &*store : nullptr, dsn, database);
}

ExitCode Up(const Invocation& invocation) {
  const auto config = invocation.Configure();
  RequireUsable(config);
  const StoreLayout layout(config.data);
  FolderLock::RequireFree(layout.folder);
  AwaitFreePorts(config, layout, invocation.stop);
  const auto checked = CheckSources(config, layout, invocation.stop);
  if (AnyRefused(checked)) {
    fmt::print(stderr, "{}tidemark: error: refused by preflight; nothing was created\n",
               CheckText(checked));
    return ExitCode::kRefused;
  }
  fmt::print("{}", CheckText(checked));
  std::fflush(stdout);
  try {
    return Run(invocation, config, layout, checked);
  } catch (const Error& error) {
    // A stop while the store starts is a stop like any other.
    if (!invocation.stop.stop_requested() || error.state() != base::kQueryCanceled) throw;
    return ExitCode::kDone;
  }
}

}  // namespace

void AddUp(Program& program) {
  auto* command = program.app.add_subcommand(
      "up", "store, live mirror, gateway and http in one, in the foreground");
  AddStoreOptions(*command, program.invocation);
  AddSourceOption(*command, program.invocation);
  AddPortOptions(*command, program.invocation);
  command->callback([&program] { program.chosen = Up; });
}

}  // namespace tidemark::cli
