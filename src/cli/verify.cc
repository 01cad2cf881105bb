// tidemark verify: do mirror and source hold the same rows at one consistent point?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/verify.h"
#include "cli/command.h"
#include "cli/text_table.h"
#include "temporal/status.h"

namespace tidemark::cli {

namespace {

using base::Error;
using capture::RowDifference;
using capture::TableComparison;
using nlohmann::json;

struct VerifyOptions {
  std::vector<std::string> tables;
  int timeout_seconds = 3600;
};

/// schema.table as `status` shows it; the first dot parts the two.
base::QualifiedName NameOf(const std::string& text) {
  const auto dot = text.find('.');
  if (dot == std::string::npos) return {"public", text};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::string Shown(const base::QualifiedName& name) { return name.schema + "." + name.name; }

/// The tables of `mirror` that were asked for; each that is found is struck off `wanted`.
std::vector<base::QualifiedName> Chosen(const json& mirror, std::vector<std::string>& wanted) {
  std::vector<base::QualifiedName> names;
  for (const auto& dataset : mirror["datasets"]) {
    const auto name = dataset["name"].get<std::string>();
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const std::string& text) {
      return Shown(NameOf(text)) == name;
    });
    if (found == wanted.end()) continue;
    names.push_back(NameOf(*found));
    wanted.erase(found);
  }
  return names;
}

std::string ResultText(const TableComparison& table) {
  if (!table.not_compared.empty()) return "not compared: " + table.not_compared;
  return table.equal ? "equal" : "different";
}

void PrintText(const std::vector<TableComparison>& tables, const std::string& position) {
  TextTable text({"TABLE", "SOURCE ROWS", "MIRROR ROWS", "RESULT"});
  for (const auto& table : tables) {
    text.Add({Shown(table.name), Grouped(table.source_count), Grouped(table.mirror_count),
              ResultText(table)});
  }
  fmt::print("{}", text.ToString());
  for (const auto& table : tables) {
    for (const auto& difference : table.differences) {
      fmt::print("{}: {}\n", Shown(table.name), difference.Describe());
    }
  }
  fmt::print("compared at {}\n", position);
}

const char* KindName(RowDifference::Kind kind) {
  switch (kind) {
    case RowDifference::Kind::kMissingInMirror:
      return "missing_in_mirror";
    case RowDifference::Kind::kOnlyInMirror:
      return "only_in_mirror";
    case RowDifference::Kind::kDifferentRow:
      break;
  }
  return "different_row";
}

json TableJson(const TableComparison& table) {
  auto differences = json::array();
  for (const auto& difference : table.differences) {
    differences.push_back({{"kind", KindName(difference.kind)},
                           {"key", difference.key},
                           {"columns", difference.columns}});
  }
  return {{"table", Shown(table.name)},       {"source_rows", table.source_count},
          {"mirror_rows", table.mirror_count}, {"equal", table.equal},
          {"not_compared", table.not_compared}, {"differences", differences}};
}

ExitCode Verify(const Invocation& invocation, const VerifyOptions& options) {
  const auto config = invocation.Configure();
  RefuseUnavailable(config);
  if (config.mirrors.empty()) {
    throw Error(base::kConfigFileError, "there is no source to compare with")
        .Hint("Name it with --source, or declare a mirror in tidemark.yaml.");
  }
  auto store = OpenStoreToRead(config, invocation.stop);
  const auto status = json::parse(temporal::LoadStatus(store));
  auto wanted = options.tables;
  bool equal = true;
  auto documents = json::array();
  for (const auto& mirror : config.mirrors) {
    const auto found =
        std::find_if(status["mirrors"].begin(), status["mirrors"].end(),
                     [&](const json& one) { return one["name"] == mirror.name; });
    if (found == status["mirrors"].end()) {
      throw Error(base::kUndefinedObject,
                  fmt::format("the store has no mirror \"{}\"", mirror.name));
    }
    const auto only = Chosen(*found, wanted);
    if (only.empty() && !options.tables.empty()) continue;
    const auto verification = capture::Verify(
        {.source_dsn = *config.FindSource(mirror.source)->dsn(),
         .store_dsn = StoreDsn(config),
         .journal = (*found)["id"].get<int>(),
         .only = only,
         .deadline = base::Deadline::After(std::chrono::seconds(options.timeout_seconds)),
         .stop = invocation.stop});
    equal = equal && verification.Equal();
    if (!invocation.json) PrintText(verification.tables, verification.position.ToString());
    auto tables = json::array();
    for (const auto& table : verification.tables) tables.push_back(TableJson(table));
    documents.push_back({{"mirror", mirror.name},
                         {"position", verification.position.ToString()},
                         {"equal", verification.Equal()},
                         {"tables", tables}});
  }
  if (!wanted.empty()) {
    throw Error(base::kUndefinedTable,
                fmt::format("table \"{}\" is not mirrored", wanted.front()))
        .Hint("\"tidemark status\" lists the tables; names are schema.table.");
  }
  if (invocation.json) fmt::print("{}\n", documents.dump());
  return equal ? ExitCode::kDone : ExitCode::kDifference;
}

}  // namespace

void AddVerify(Program& program) {
  auto* command = program.app.add_subcommand(
      "verify", "compare mirror and source at one consistent point; exit 4 on a difference");
  AddStoreOptions(*command, program.invocation);
  AddSourceOption(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("tables", options->tables, "tables to compare (all)")->type_name("DATASET");
  command->add_option("--timeout", options->timeout_seconds, "seconds at most (3600)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("SECONDS");
  command->callback([&program, options] {
    program.chosen = [options](const Invocation& invocation) {
      return Verify(invocation, *options);
    };
  });
}

}  // namespace tidemark::cli
