// tidemark prune [NAME…]: drops history that is older than its retention; with --erase, one key's
// values out of all history. Contacts the store only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/dataset_plan.h"
#include "cli/text_table.h"
#include "temporal/prune.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using base::Error;
using nlohmann::json;

constexpr auto kConnectLimit = std::chrono::seconds(30);
constexpr auto kStatementLimit = std::chrono::hours(1);

struct PruneArguments {
  std::vector<std::string> names;
  std::string older_than;
  std::string erase;
  std::vector<std::string> key;
  int timeout_seconds = 60;
};

std::vector<temporal::Retention> RetentionsOf(const Config& config,
                                              const PruneArguments& arguments) {
  std::vector<std::string> names = arguments.names;
  const auto known = [&](const std::string& name) {
    return std::ranges::find(config.mirrors, name, &Mirror::name) != config.mirrors.end() ||
           std::ranges::find(config.datasets, name, &Dataset::name) != config.datasets.end();
  };
  for (const auto& name : names) {
    if (known(name)) continue;
    throw Error(base::kConfigFileError,
                fmt::format("there is no mirror or dataset \"{}\"", name));
  }
  std::vector<temporal::Retention> retentions;
  if (arguments.older_than.empty()) {
    retentions = PlanRetentions(config);
    std::erase_if(retentions, [&](const temporal::Retention& retention) {
      return !names.empty() && std::ranges::find(names, retention.journal) == names.end();
    });
  } else {
    for (const auto& mirror : config.mirrors) {
      if (arguments.names.empty()) names.push_back(mirror.name);
    }
    for (const auto& dataset : config.datasets) {
      if (arguments.names.empty()) names.push_back(dataset.name);
    }
    for (const auto& name : names) retentions.push_back({name, arguments.older_than});
  }
  if (retentions.empty()) {
    throw Error(base::kConfigFileError, "there is no retention to prune by")
        .Hint("Declare \"retention: 90d\" in tidemark.yaml, or give --older-than.");
  }
  return retentions;
}

void Print(const std::vector<temporal::Pruned>& pruned, bool as_json) {
  if (as_json) {
    auto all = json::array();
    for (const auto& each : pruned) {
      all.push_back({{"table", each.table.schema + "." + each.table.name},
                     {"partitions", each.partitions},
                     {"waits", each.waits},
                     {"horizon", each.horizon.empty() ? json() : json(each.horizon)}});
    }
    fmt::print("{}\n", all.dump());
    return;
  }
  TextTable table({"TABLE", "PARTITIONS DROPPED", "READABLE SINCE", ""});
  for (const auto& each : pruned) {
    table.Add({each.table.schema + "." + each.table.name, Grouped(each.partitions),
               each.horizon.empty() ? "its beginning" : each.horizon,
               each.waits ? "an older reader holds the rest: prune again later" : ""});
  }
  fmt::print("{}", table.ToString());
}

ExitCode EraseKey(pg::Connection& store, const Invocation& invocation,
                  const PruneArguments& arguments) {
  const auto dot = arguments.erase.find('.');
  const base::QualifiedName table =
      dot == std::string::npos
          ? base::QualifiedName{"public", arguments.erase}
          : base::QualifiedName{arguments.erase.substr(0, dot), arguments.erase.substr(dot + 1)};
  std::vector<std::pair<std::string, std::string>> key;
  for (const auto& text : arguments.key) {
    const auto equal = text.find('=');
    if (equal == std::string::npos) {
      throw Error(base::kConfigFileError, fmt::format("--key: \"{}\" is not column=value", text));
    }
    key.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
  const auto versions = temporal::Erase(store, table, key);
  if (invocation.json) {
    fmt::print("{}\n", json{{"table", arguments.erase}, {"versions", versions}}.dump());
  } else {
    fmt::print("{}: {} closed versions erased\n", arguments.erase, Grouped(versions));
  }
  return ExitCode::kDone;
}

ExitCode Prune(const Invocation& invocation, const PruneArguments& arguments) {
  const auto config = invocation.Configure();
  auto store = temporal::OpenStore(StoreDsn(config), base::Deadline::After(kConnectLimit),
                                   invocation.stop);
  store.SetLimits(kStatementLimit, invocation.stop);
  if (!arguments.erase.empty()) return EraseKey(store, invocation, arguments);
  const auto pruned =
      temporal::Prune(store, RetentionsOf(config, arguments),
                      base::Deadline::After(std::chrono::seconds(arguments.timeout_seconds)),
                      invocation.stop);
  Print(pruned, invocation.json);
  return ExitCode::kDone;
}

}  // namespace

void AddPrune(Program& program) {
  auto* command = program.app.add_subcommand(
      "prune", "drop history older than its retention, or erase one key's values from history");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto arguments = std::make_shared<PruneArguments>();
  command->add_option("names", arguments->names, "mirrors and datasets (all)")->type_name("NAME");
  command->add_option("--older-than", arguments->older_than, "instead of the declared retention")
      ->type_name("SPAN");
  auto* erase = command->add_option("--erase", arguments->erase, "the table to erase a key from")
                    ->type_name("TABLE");
  command->add_option("--key", arguments->key, "the key, one for each of its columns")
      ->type_name("COLUMN=VALUE")
      ->needs(erase);
  command->add_option("--timeout", arguments->timeout_seconds,
                      "how long to wait for older readers (60)")
      ->type_name("SECONDS");
  command->callback([&program, arguments] {
    program.chosen = [arguments](const Invocation& invocation) {
      return Prune(invocation, *arguments);
    };
  });
}

}  // namespace tidemark::cli
