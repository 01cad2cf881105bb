// tidemark follow: the capturing half. Follows every mirror of the configuration, captures its
// datasets on their cadence and when an occurrence asks for it, drops history older than its
// retention, and tells its webhooks what changed, until stopped. Besides it only `capture`, `check`
// and `verify` contact a source.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "capture/cadenced_captures.h"
#include "capture/mirror_job.h"
#include "capture/retention_job.h"
#include "cli/command.h"
#include "cli/dataset_plan.h"
#include "cli/error_text.h"
#include "http/webhook_delivery.h"
#include "temporal/durability.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using base::Error;

constexpr auto kConnectLimit = std::chrono::seconds(30);

/// Mirrors, cadences and webhooks side by side, one thread each. The first that fails for good
/// stops the others.
class CaptureThreads {
 public:
  explicit CaptureThreads(const std::stop_token& stop)
      : on_stop_(stop, [this] { all_.request_stop(); }) {}

  /// `run` returns when its token is stopped; `what` is its name for messages.
  void Start(std::string what, std::function<void(std::stop_token)> run) {
    threads_.emplace_back([this, what = std::move(what), run = std::move(run)] {
      try {
        run(all_.get_token());
      } catch (Error& error) {
        Keep(std::move(error.AddContext(what)));
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

base::Timestamp Now() {
  return base::Timestamp::FromSystem(std::chrono::system_clock::now());
}

/// What is not followed live, with its cadence; of what has none it is said what captures it.
std::vector<capture::CadencedDataset> CadencedDatasets(const Config& config) {
  std::vector<capture::CadencedDataset> cadenced;
  for (auto& [dataset, cadence] : PlanCadences(config)) {
    cadenced.push_back({.dataset = std::move(dataset), .cadence = {}});
    if (!cadence.empty()) {
      cadenced.back().cadence = capture::Cadence::Parse(cadence);
    } else {
      spdlog::info("dataset {} has no cadence: it is captured by hand and by occurrences only",
                   cadenced.back().dataset.name);
    }
  }
  return cadenced;
}

ExitCode Follow(const Invocation& invocation) {
  const auto config = invocation.Configure();
  auto cadenced = CadencedDatasets(config);
  if (config.mirrors.empty() && cadenced.empty() && config.webhooks.empty()) {
    throw Error(base::kConfigFileError, "there is nothing to follow")
        .Hint("Name a PostgreSQL with --source, or declare a mirror or a dataset in tidemark.yaml.");
  }
  const auto dsn = StoreDsn(config);
  {
    auto store = temporal::OpenStore(dsn, base::Deadline::After(kConnectLimit), invocation.stop);
    temporal::RequireDurable(temporal::LoadDurability(store), config.allow_volatile_store);
  }
  CaptureThreads threads(invocation.stop);
  for (const auto& options : PlanLive(config, dsn)) {
    threads.Start(fmt::format("mirror \"{}\"", options.name),
                  [options](std::stop_token stop) { capture::MirrorJob(options).Run(stop); });
  }
  if (!cadenced.empty()) {
    threads.Start("datasets", [&dsn, &cadenced, &config](std::stop_token stop) {
      capture::RunCadences({.store_dsn = dsn,
                            .datasets = std::move(cadenced),
                            .keep_going = config.keep_going,
                            .history = PlanHistory(config),
                            .now = Now},
                           stop);
    });
  }
  if (auto retentions = PlanRetentions(config); !retentions.empty()) {
    threads.Start("retention", [&dsn, retentions](std::stop_token stop) {
      capture::KeepRetention({.store_dsn = dsn, .retentions = retentions, .now = Now}, stop);
    });
  }
  for (const auto& webhook : config.webhooks) {
    threads.Start(fmt::format("webhook \"{}\"", webhook.name),
                  [options = http::WebhookOptions{.name = webhook.name,
                                                  .store_dsn = dsn,
                                                  .url = webhook.url,
                                                  .keys = webhook.keys,
                                                  .datasets = webhook.datasets}](
                      std::stop_token stop) { http::DeliverWebhook(options, stop); });
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
      "follow",
      "capture: copy mirrors once and follow them live, datasets on their cadence and by occurrences, "
      "and tell webhooks, until stopped");
  AddStoreOptions(*command, program.invocation);
  AddSourceOption(*command, program.invocation);
  command->callback([&program] { program.chosen = Follow; });
}

}  // namespace tidemark::cli
