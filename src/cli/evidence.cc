// tidemark evidence BASIS: the five facts of each dataset that a publish changed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/text_table.h"
#include "temporal/status.h"

namespace tidemark::cli {

namespace {

constexpr size_t kHashDigitsShown = 16;

std::string Text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : "-";
}

ExitCode Evidence(const Invocation& invocation, int64_t basis) {
  auto store = OpenStoreToRead(invocation.Configure(), invocation.stop);
  const auto text = temporal::LoadEvidence(store, basis);
  if (!text) {
    throw base::Error(base::kUndefinedObject, fmt::format("there is no basis {}", basis))
        .Hint("\"tidemark bases\" lists them.");
  }
  if (invocation.json) {
    fmt::print("{}\n", *text);
    return ExitCode::kDone;
  }
  const auto found = nlohmann::json::parse(*text);
  fmt::print("basis {}, system time {}\n", basis, Text(found["system_time"]));
  TextTable table({"DATASET", "SOURCE POSITION", "EXTRACTED FROM", "TO", "VERSION", "TX",
                   "ACCEPTED", "ROWS", "PUTS", "DELETIONS"});
  for (const auto& member : found["members"]) {
    table.Add({Text(member["dataset"]), Text(member["source_position"]),
               Text(member["extracted_from"]), Text(member["extracted_to"]),
               Text(member["version"]).substr(0, kHashDigitsShown),
               std::to_string(member["tx"].get<int64_t>()), Text(member["accepted_at"]),
               Grouped(member["rows"].get<int64_t>()), Grouped(member["puts"].get<int64_t>()),
               Grouped(member["deletions"].get<int64_t>())});
  }
  fmt::print("{}", table.empty() ? "no dataset changed\n" : table.ToString());
  return ExitCode::kDone;
}

}  // namespace

void AddEvidence(Program& program) {
  auto* command =
      program.app.add_subcommand("evidence", "show the five facts of each member of a publish");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto basis = std::make_shared<int64_t>(0);
  command->add_option("basis", *basis, "number of the basis")->required()->type_name("BASIS");
  command->callback([&program, basis] {
    program.chosen = [basis](const Invocation& invocation) { return Evidence(invocation, *basis); };
  });
}

}  // namespace tidemark::cli
