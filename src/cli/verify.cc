// tidemark verify: do mirror and source hold the same rows at one consistent point? With --versions
// and --history: is what the store keeps what was published (store_check.h)?
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/verify.h"
#include "cli/command.h"
#include "cli/store_check.h"
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
  int timeout_seconds = 24 * 3600;
  int throttle_ms = 0;
  int chunk_rows = 50'000;
  bool resume = false, versions = false, history = false;
};

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

/// One line on a terminal that tells how far it is; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { Clear(); }
  void Show(const TableComparison& table) {
    if (!shown_) return;
    fmt::print(stderr, "\r\x1b[K{}: {} rows compared{}", Shown(table.name),
               Grouped(table.source_count), table.equal ? "" : ", differences found");
    dirty_ = true;
  }
  void Clear() {
    if (dirty_) fmt::print(stderr, "\r\x1b[K");
    dirty_ = false;
  }

 private:
  bool shown_, dirty_ = false;
};

/// Where a table was compared; all of it at one point unless it was interrupted in its middle.
std::string PositionText(const TableComparison& table) {
  if (!table.position.valid()) return "-";
  if (table.segments < 2) return table.position.ToString();
  return fmt::format("{} to {}", table.first_position.ToString(), table.position.ToString());
}

void PrintText(const std::vector<TableComparison>& tables) {
  TextTable text({"TABLE", "SOURCE ROWS", "MIRROR ROWS", "COMPARED AT", "RESULT"});
  for (const auto& table : tables) {
    text.Add({Shown(table.name), Grouped(table.source_count), Grouped(table.mirror_count),
              PositionText(table), ResultText(table)});
  }
  fmt::print("{}", text.ToString());
  for (const auto& table : tables) {
    for (const auto& difference : table.differences) {
      fmt::print("{}: {}\n", Shown(table.name), difference.Describe());
    }
  }
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
          {"not_compared", table.not_compared}, {"differences", differences},
          {"chunks", table.chunks},             {"segments", table.segments},
          {"first_position", table.first_position.valid() ? json(table.first_position.ToString())
                                                          : json()},
          {"position", table.position.valid() ? json(table.position.ToString()) : json()}};
}

capture::Verification VerifyMirror(const Invocation& invocation, const VerifyOptions& options,
                                   capture::VerifyRequest request) {
  ProgressLine line;
  request.chunk_rows = options.chunk_rows;
  request.pause = std::chrono::milliseconds(options.throttle_ms);
  request.resume = options.resume;
  request.deadline = base::Deadline::After(std::chrono::seconds(options.timeout_seconds));
  request.stop = invocation.stop;
  request.on_chunk = [&](const TableComparison& table) { line.Show(table); };
  request.on_table = request.on_chunk;
  try {
    return capture::Verify(request);
  } catch (const Error& error) {
    if (!invocation.stop.stop_requested()) throw;
    throw Error(error.state(), "verify was stopped")
        .Hint("Go on where it stopped with \"tidemark verify --resume\".");
  }
}

ExitCode Verify(const Invocation& invocation, const VerifyOptions& options) {
  if (options.versions) return CheckVersions(invocation, options.tables);
  if (options.history) return CheckHistories(invocation, options.tables);
  const auto config = invocation.Configure();
  if (config.mirrors.empty()) {
    throw Error(base::kConfigFileError, "there is no source to compare with")
        .Hint("Name it with --source, or declare a mirror in tidemark.yaml.");
  }
  auto store = OpenStoreToRead(config, invocation.stop);
  const auto status = json::parse(temporal::LoadStatus(store));
  auto wanted = options.tables;
  bool equal = true;
  size_t continued = 0;
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
    const auto verification =
        VerifyMirror(invocation, options,
                     {.source_dsn = *config.FindSource(mirror.source)->dsn(),
                      .store_dsn = StoreDsn(config),
                      .journal = (*found)["id"].get<int>(),
                      .only = only});
    continued += verification.continued;
    equal = equal && verification.Equal();
    if (!invocation.json) PrintText(verification.tables);
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
  if (options.resume && continued == 0) {
    fmt::print(stderr, "nothing was left to compare: this is what the newest run has found\n");
  }
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
  auto* resume = command->add_flag("--resume", options->resume,
                                   "go on where the newest run was interrupted");
  auto* versions = command->add_flag(
      "--versions", options->versions,
      "recompute the versions of datasets outside mirrors from the stored history");
  command->add_flag("--history", options->history,
                    "check the periods of all stored row versions; contacts no source")
      ->excludes(versions)
      ->excludes(resume);
  resume->excludes(versions);
  command->add_option("--throttle", options->throttle_ms,
                      "milliseconds to pause after each chunk (0)")
      ->check(CLI::Range(0, 3'600'000))
      ->type_name("MILLISECONDS");
  command->add_option("--chunk-rows", options->chunk_rows, "rows compared at a time (50000)")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("ROWS");
  command->add_option("--timeout", options->timeout_seconds, "seconds at most (86400)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("SECONDS");
  command->callback([&program, options] {
    program.chosen = [options](const Invocation& invocation) {
      return Verify(invocation, *options);
    };
  });
}

}  // namespace tidemark::cli
