// tidemark evidence BASIS: the five facts of each member of a publish, and what is missing from it.
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

std::string Text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "-" : value.dump();
}

/// What the source says of itself, in its own words: one fact a line after the log position.
std::string PositionText(const nlohmann::json& member) {
  std::string text = fmt::format("  source position   {}\n", Text(member["source_position"]));
  if (!member["position"].is_object()) return text;
  for (const auto& [name, value] : member["position"].items()) {
    if (name != "lsn") text += fmt::format("                    {} {}\n", name, Text(value));
  }
  return text;
}

std::string MemberText(const nlohmann::json& member) {
  return fmt::format(
      "{}\n{}  extracted         {} to {}\n  dataset version   {}\n"
      "  temporal basis    tx {}: {} rows, {} puts, {} deletions\n  accepted          {}\n",
      Text(member["dataset"]), PositionText(member), Text(member["extracted_from"]),
      Text(member["extracted_to"]), Text(member["version"]), member["tx"].get<int64_t>(),
      Grouped(member["rows"].get<int64_t>()), Grouped(member["puts"].get<int64_t>()),
      Grouped(member["deletions"].get<int64_t>()), Text(member["accepted_at"]));
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
  for (const auto& member : found["members"]) fmt::print("\n{}", MemberText(member));
  if (found["members"].empty()) fmt::print("no dataset changed\n");
  for (const auto& failure : found["failures"]) {
    fmt::print("\nnot in this basis: {}: {} ({})\n", Text(failure["dataset"]),
               Text(failure["message"]), Text(failure["sqlstate"]));
  }
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
