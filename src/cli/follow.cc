// tidemark follow: the capturing half. Follows every mirror of the configuration until stopped; the
// only command besides `check` and `verify` that contacts a source.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "capture/mirror_job.h"
#include "cli/command.h"
#include "cli/error_text.h"
#include "temporal/durability.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using base::Error;

constexpr auto kConnectLimit = std::chrono::seconds(30);

/// Mirrors side by side, one thread each. The first that fails for good stops the others.
class MirrorThreads {
 public:
  explicit MirrorThreads(const std::stop_token& stop)
      : on_stop_(stop, [this] { all_.request_stop(); }) {}

  void Start(capture::MirrorOptions options) {
    threads_.emplace_back([this, options = std::move(options)]() mutable {
      const auto name = options.name;
      try {
        capture::MirrorJob(std::move(options)).Run(all_.get_token());
      } catch (Error& error) {
        Keep(std::move(error.AddContext(fmt::format("mirror \"{}\"", name))));
      } catch (const std::exception& error) {
        Keep(Error(base::kInternalError, error.what()));
      }
    });
  }

  /// Returns when all have ended: the first failure, if there was one.
  std::optional<Error> Join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    return failure_;
  }

 private:
  void Keep(Error error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    all_.request_stop();
  }

  std::stop_source all_;
  std::stop_callback<std::function<void()>> on_stop_;
  std::mutex mutex_;
  std::optional<Error> failure_;
  std::vector<std::thread> threads_;
};

ExitCode Follow(const Invocation& invocation) {
  const auto config = invocation.Configure();
  RefuseUnavailable(config);
  if (config.mirrors.empty()) {
    throw Error(base::kConfigFileError, "there is nothing to follow")
        .Hint("Name a PostgreSQL with --source, or declare a mirror in tidemark.yaml.");
  }
  const auto dsn = StoreDsn(config);
  {
    auto store = temporal::OpenStore(dsn, base::Deadline::After(kConnectLimit), invocation.stop);
    temporal::RequireDurable(temporal::LoadDurability(store), config.allow_volatile_store);
  }
  MirrorThreads threads(invocation.stop);
  for (const auto& mirror : config.mirrors) {
    threads.Start({.name = mirror.name,
                   .source_dsn = *config.FindSource(mirror.source)->dsn(),
                   .store_dsn = dsn,
                   .publication = mirror.publication,
                   .slot = mirror.slot});
  }
  const auto failure = threads.Join();
  if (!failure) return ExitCode::kDone;
  PrintError(*failure);
  // What may pass is worth another start; the rest waits for a person.
  return failure->IsTransient() ? ExitCode::kFailed : ExitCode::kRefused;
}

}  // namespace

void AddFollow(Program& program) {
  auto* command = program.app.add_subcommand(
      "follow", "capture: copy mirrors once, then follow them live, until stopped");
  AddStoreOptions(*command, program.invocation);
  AddSourceOption(*command, program.invocation);
  command->callback([&program] { program.chosen = Follow; });
}

}  // namespace tidemark::cli
