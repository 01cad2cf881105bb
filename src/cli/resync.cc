// tidemark resync [TABLE…]: has the follower read mirrored tables whole again, and returns once the
// differences are published. Contacts the store only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/child_process.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/text_table.h"
#include "temporal/resync.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using nlohmann::json;
using temporal::ResyncState;

constexpr auto kConnectLimit = std::chrono::seconds(30);
constexpr auto kPollEvery = std::chrono::milliseconds(200);

struct ResyncArguments {
  std::vector<std::string> tables;
  int timeout_seconds = 24 * 3600;
  bool wait = true;
};

base::QualifiedName NameOf(const std::string& text) {
  const auto dot = text.find('.');
  if (dot == std::string::npos) return {"public", text};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::string ResultOf(const ResyncState& state) {
  if (state.ended) {
    return state.basis ? fmt::format("published as basis {}", *state.basis) : "published";
  }
  return state.error.empty() ? "under way" : "failed: " + state.error;
}

void Print(const std::vector<ResyncState>& states, bool as_json) {
  if (as_json) {
    auto all = json::array();
    for (const auto& state : states) {
      all.push_back({{"table", state.table.schema + "." + state.table.name},
                     {"request", state.request},
                     {"published", state.ended},
                     {"basis", state.basis ? json(*state.basis) : json()},
                     {"puts", state.puts},
                     {"deletions", state.deletions},
                     {"sqlstate", state.sqlstate.empty() ? json() : json(state.sqlstate)},
                     {"error", state.error.empty() ? json() : json(state.error)}});
    }
    fmt::print("{}\n", all.dump(-1, ' ', false, json::error_handler_t::replace));
    return;
  }
  TextTable table({"TABLE", "PUTS", "DELETIONS", "RESULT"});
  for (const auto& state : states) {
    table.Add({state.table.schema + "." + state.table.name, Grouped(state.puts),
               Grouped(state.deletions), ResultOf(state)});
  }
  fmt::print("{}", table.ToString());
}

ExitCode Resync(const Invocation& invocation, const ResyncArguments& arguments) {
  auto store = temporal::OpenStore(StoreDsn(invocation.Configure()),
                                   base::Deadline::After(kConnectLimit), invocation.stop);
  std::vector<base::QualifiedName> names;
  for (const auto& text : arguments.tables) names.push_back(NameOf(text));
  const auto requests = temporal::RequestResync(store, names);
  if (requests.empty()) {
    throw base::Error(base::kUndefinedTable, "no table is mirrored yet");
  }
  const auto deadline = base::Deadline::After(std::chrono::seconds(arguments.timeout_seconds));
  auto states = temporal::LoadResyncs(store, requests);
  const auto all_ended = [&] { return std::ranges::all_of(states, &ResyncState::ended); };
  while (arguments.wait && !all_ended() && !deadline.passed() &&
         !invocation.stop.stop_requested()) {
    base::WaitReadable({}, deadline.Min(base::Deadline::After(kPollEvery)), invocation.stop);
    states = temporal::LoadResyncs(store, requests);
  }
  Print(states, invocation.json);
  if (!arguments.wait || all_ended()) return ExitCode::kDone;
  throw base::Error(base::kQueryCanceled, "not everything has been published yet")
      .Hint("The requests stay: \"tidemark follow\" (or \"up\") meets them. See \"tidemark status\".");
}

}  // namespace

void AddResync(Program& program) {
  auto* command = program.app.add_subcommand(
      "resync", "read mirrored tables whole again and publish what differs; keeps all history");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto arguments = std::make_shared<ResyncArguments>();
  command->add_option("tables", arguments->tables, "tables, as schema.table (all)")
      ->type_name("TABLE");
  command->add_option("--timeout", arguments->timeout_seconds, "how long to wait (a day)")
      ->type_name("SECONDS");
  command->add_flag("!--no-wait", arguments->wait, "ask and return");
  command->callback([&program, arguments] {
    program.chosen = [arguments](const Invocation& invocation) {
      return Resync(invocation, *arguments);
    };
  });
}

}  // namespace tidemark::cli
