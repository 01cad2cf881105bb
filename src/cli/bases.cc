// tidemark bases: the newest publishes of the store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/text_table.h"
#include "temporal/status.h"

namespace tidemark::cli {

namespace {

ExitCode Bases(const Invocation& invocation, int64_t limit) {
  auto store = OpenStoreToRead(invocation.Configure(), invocation.stop);
  const auto text = temporal::LoadBases(store, limit);
  if (invocation.json) {
    fmt::print("{}\n", text);
    return ExitCode::kDone;
  }
  TextTable table({"BASIS", "SYSTEM TIME", "UP TO TX", "DATASETS", "PUTS", "DELETIONS"});
  for (const auto& basis : nlohmann::json::parse(text)) {
    std::string journals;
    if (basis["journals"].is_array()) {
      for (const auto& journal : basis["journals"]) {
        journals += fmt::format("{}{} {}", journals.empty() ? "" : ", ",
                                journal["journal"].get<std::string>(),
                                journal["tx_last"].get<int64_t>());
      }
    }
    table.Add({std::to_string(basis["basis"].get<int64_t>()),
               basis["system_time"].get<std::string>(), journals,
               std::to_string(basis["members"].get<int64_t>()),
               Grouped(basis["puts"].get<int64_t>()),
               Grouped(basis["deletions"].get<int64_t>())});
  }
  fmt::print("{}", table.empty() ? "no basis has been published yet\n" : table.ToString());
  return ExitCode::kDone;
}

}  // namespace

void AddBases(Program& program) {
  auto* command = program.app.add_subcommand("bases", "list the newest publishes");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto limit = std::make_shared<int64_t>(20);
  command->add_option("--limit", *limit, "how many, newest first (20)")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  command->callback([&program, limit] {
    program.chosen = [limit](const Invocation& invocation) { return Bases(invocation, *limit); };
  });
}

}  // namespace tidemark::cli
