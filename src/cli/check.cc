// tidemark check: preflight of sources and store; says what is in the way and creates nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/dataset_check.h"
#include "cli/source_check.h"
#include "temporal/durability.h"
#include "temporal/server_binaries.h"
#include "temporal/store.h"
#include "temporal/store_layout.h"

namespace tidemark::cli {

namespace {

constexpr auto kConnectLimit = std::chrono::seconds(15);

/// A store that exists and runs; an embedded one that is yet to be made, or stopped, is not needed.
std::optional<pg::Connection> FindStore(const Config& config, const std::stop_token& stop) {
  if (!config.store_dsn) {
    const temporal::StoreLayout layout(config.data);
    if (!std::filesystem::exists(layout.store)) temporal::FindServerBinaries();
    if (!std::filesystem::exists(layout.socket_folder / ".s.PGSQL.5432")) return std::nullopt;
  }
  auto store =
      temporal::OpenStore(StoreDsn(config), base::Deadline::After(kConnectLimit), stop);
  temporal::RequireDurable(temporal::LoadDurability(store), config.allow_volatile_store);
  return store;
}

ExitCode Check(const Invocation& invocation) {
  const auto config = invocation.Configure();
  RequireSafeListen(config.gateway, "gateway");
  if (config.mirrors.empty() && config.datasets.empty()) {
    throw base::Error(base::kConfigFileError, "there is no source to check")
        .Hint("Name one with --source, or declare a mirror or a dataset in tidemark.yaml.");
  }
  auto store = FindStore(config, invocation.stop);
  const auto checked = CheckMirrors(config, store ? &*store : nullptr, invocation.stop);
  const auto datasets = CheckDatasets(config, invocation.stop);
  if (invocation.json) {
    auto all = CheckJson(checked);
    for (auto& dataset : CheckJson(datasets)) all.push_back(std::move(dataset));
    fmt::print("{}\n", all.dump());
  } else {
    fmt::print("{}{}", CheckText(checked), CheckText(datasets));
  }
  const bool refused =
      AnyRefused(checked) || std::ranges::any_of(datasets, &CheckedDataset::Refused);
  return refused ? ExitCode::kRefused : ExitCode::kDone;
}

}  // namespace

void AddCheck(Program& program) {
  auto* command = program.app.add_subcommand(
      "check", "preflight of sources and store: problems and fixes; creates nothing");
  AddStoreOptions(*command, program.invocation);
  AddSourceOption(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  command->callback([&program] { program.chosen = Check; });
}

}  // namespace tidemark::cli
