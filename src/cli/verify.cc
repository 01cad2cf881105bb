// tidemark verify: do mirror and source hold the same rows at one consistent point? With --versions:
// do the stored row versions still give the versions that were published?
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
#include "temporal/version_chain.h"

namespace tidemark::cli {

namespace {

using base::Error;
using capture::RowDifference;
using capture::TableComparison;
using nlohmann::json;

struct VerifyOptions {
  std::vector<std::string> tables;
  int timeout_seconds = 3600;
  bool versions = false;
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

json ChainJson(const temporal::ChainCheck& check) {
  json broken;
  if (!check.breaks.empty()) {
    const auto& first = check.breaks.front();
    broken = {{"basis", first.basis}, {"tx", first.tx}, {"what", first.what}};
  }
  return {{"dataset", Shown(check.name)}, {"versions", check.versions}, {"break", broken}};
}

ExitCode VerifyVersions(const Invocation& invocation, const VerifyOptions& options) {
  auto store = OpenStoreToRead(invocation.Configure(), invocation.stop);
  store.SetLimits(std::chrono::seconds(options.timeout_seconds), invocation.stop);
  store.Execute("SET lc_monetary = 'C'");
  auto wanted = options.tables;
  bool whole = true;
  auto documents = json::array();
  TextTable text({"DATASET", "VERSIONS", "RESULT"});
  for (const auto& dataset : temporal::LoadVersionedDatasets(store)) {
    const auto found = std::find_if(wanted.begin(), wanted.end(), [&](const std::string& name) {
      return NameOf(name) == dataset.name;
    });
    if (found == wanted.end() && !options.tables.empty()) continue;
    if (found != wanted.end()) wanted.erase(found);
    const auto check = temporal::CheckChain(store, dataset);
    whole = whole && check.breaks.empty();
    documents.push_back(ChainJson(check));
    text.Add({Shown(check.name), Grouped(check.versions),
              check.breaks.empty() ? "holds"
                                   : fmt::format("broken at basis {}, tx {}: {}",
                                                 check.breaks.front().basis,
                                                 check.breaks.front().tx,
                                                 check.breaks.front().what)});
  }
  if (!wanted.empty()) {
    throw Error(base::kUndefinedTable,
                fmt::format("\"{}\" is no captured dataset outside a mirror", wanted.front()))
        .Hint("\"tidemark status\" lists the datasets; names are schema.table.");
  }
  if (invocation.json) {
    fmt::print("{}\n", documents.dump());
  } else {
    fmt::print("{}", text.empty() ? "no dataset outside a mirror\n" : text.ToString());
  }
  return whole ? ExitCode::kDone : ExitCode::kDifference;
}

ExitCode Verify(const Invocation& invocation, const VerifyOptions& options) {
  if (options.versions) return VerifyVersions(invocation, options);
  const auto config = invocation.Configure();
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
  command->add_flag("--versions", options->versions,
                    "recompute the versions of datasets outside mirrors from the stored history");
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
