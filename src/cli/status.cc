// tidemark status: what the store says of mirrors and datasets. Reads the store only, so it works
// while nothing captures and while no source can be reached.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "cli/command.h"
#include "cli/status_text.h"
#include "temporal/durability.h"
#include "temporal/status.h"
#include "temporal/store_layout.h"

namespace tidemark::cli {

namespace {

constexpr auto kRedrawEvery = std::chrono::seconds(1);

nlohmann::json LoadStatus(pg::Connection& store, const Config& config) {
  auto status = nlohmann::json::parse(temporal::LoadStatus(store));
  std::optional<std::filesystem::path> data_folder;
  if (!config.store_dsn) data_folder = temporal::StoreLayout(config.data).store;
  const auto durability = temporal::LoadDurability(store, data_folder);
  status["store"]["kind"] = config.store_dsn ? "external" : "embedded";
  status["store"]["volatile"] = durability.IsVolatile();
  status["store"]["volatile_reasons"] = durability.Reasons();
  return status;
}

ExitCode Status(const Invocation& invocation, bool watch) {
  const auto config = invocation.Configure();
  auto store = OpenStoreToRead(config, invocation.stop);
  for (;;) {
    const auto status = LoadStatus(store, config);
    if (watch && !invocation.json && ::isatty(STDOUT_FILENO) != 0) fmt::print("\x1b[H\x1b[2J");
    fmt::print("{}", invocation.json ? status.dump() + "\n" : StatusText(status));
    std::fflush(stdout);
    if (!watch) return ExitCode::kDone;
    base::WaitReadable({}, base::Deadline::After(kRedrawEvery), invocation.stop);
    if (invocation.stop.stop_requested()) return ExitCode::kDone;
  }
}

}  // namespace

void AddStatus(Program& program) {
  auto* command =
      program.app.add_subcommand("status", "show mirrors, datasets, lag, positions and problems");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto watch = std::make_shared<bool>(false);
  command->add_flag("--watch", *watch, "show it again every second until stopped");
  command->callback([&program, watch] {
    program.chosen = [watch](const Invocation& invocation) { return Status(invocation, *watch); };
  });
}

}  // namespace tidemark::cli
