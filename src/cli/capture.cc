// tidemark capture: one capture of declared datasets by hand, published as one basis.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/capture_run.h"
#include "cli/command.h"
#include "cli/dataset_plan.h"
#include "cli/error_text.h"
#include "cli/text_table.h"
#include "temporal/durability.h"
#include "temporal/store.h"

namespace tidemark::cli {

namespace {

using capture::CaptureReport;
using capture::MemberOutcome;
using nlohmann::json;

constexpr auto kConnectLimit = std::chrono::seconds(30);
constexpr size_t kHashDigitsShown = 16;

struct CaptureArguments {
  std::vector<std::string> datasets;
  bool keep_going = false;
};

/// One line on a terminal that tells how far it is; nothing elsewhere.
class ProgressLine {
 public:
  ProgressLine() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { Clear(); }

  void Show(const std::string& name, int64_t rows) {
    if (!shown_) return;
    const auto now = base::Deadline::Clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    fmt::print(stderr, "\r\x1b[K{}: {} rows read", name, Grouped(rows));
    dirty_ = true;
  }
  void Clear() {
    if (dirty_) fmt::print(stderr, "\r\x1b[K");
    dirty_ = false;
  }

 private:
  bool shown_, dirty_ = false;
  base::Deadline::Clock::time_point last_{};
};

const char* OutcomeWord(MemberOutcome outcome) {
  switch (outcome) {
    case MemberOutcome::kPublished: return "published";
    case MemberOutcome::kUnchanged: return "unchanged";
    case MemberOutcome::kFailed: return "failed";
    case MemberOutcome::kNotPublished: break;
  }
  return "not published";
}

json ErrorJson(const base::Error& error) {
  return {{"sqlstate", error.state().str()}, {"message", error.message()},
          {"detail", error.detail()},        {"hint", error.hint()}};
}

void PrintJson(const CaptureReport& report) {
  auto members = json::array();
  for (const auto& member : report.members) {
    members.push_back({{"dataset", member.name},
                       {"outcome", OutcomeWord(member.outcome)},
                       {"puts", member.puts},
                       {"deletions", member.deletions},
                       {"rows", member.live_rows},
                       {"version", member.version.empty() ? json() : json(member.version)},
                       {"error", member.error ? ErrorJson(*member.error) : json()}});
  }
  const json document = {
      {"capture", report.capture},
      {"basis", report.basis ? json(report.basis->number) : json()},
      {"system_time", report.basis ? json(report.basis->system_time) : json()},
      {"members", members}};
  fmt::print("{}\n", document.dump(-1, ' ', false, json::error_handler_t::replace));
}

void PrintText(const CaptureReport& report) {
  TextTable table({"DATASET", "RESULT", "PUTS", "DELETIONS", "ROWS", "VERSION"});
  for (const auto& member : report.members) {
    const bool published = !member.version.empty();
    table.Add({member.name, OutcomeWord(member.outcome),
               published ? Grouped(member.puts) : "-",
               published ? Grouped(member.deletions) : "-",
               published ? Grouped(member.live_rows) : "-",
               published ? member.version.substr(0, kHashDigitsShown) : "-"});
  }
  fmt::print("{}", table.ToString());
  if (report.basis) {
    fmt::print("published as basis {}, system time {}\n", report.basis->number,
               report.basis->system_time);
  } else {
    fmt::print("nothing was published\n");
  }
}

ExitCode Capture(const Invocation& invocation, const CaptureArguments& arguments) {
  const auto config = invocation.Configure();
  auto plan = PlanDatasets(config, arguments.datasets);
  const auto dsn = StoreDsn(config);
  {
    auto store = temporal::OpenStore(dsn, base::Deadline::After(kConnectLimit), invocation.stop);
    temporal::RequireDurable(temporal::LoadDurability(store), config.allow_volatile_store);
  }
  ProgressLine line;
  const auto report = capture::RunCapture(
      {.store_dsn = dsn,
       .datasets = std::move(plan),
       .keep_going = arguments.keep_going,
       .history = PlanHistory(config),
       .progressed = [&](const auto& dataset, int64_t rows) { line.Show(dataset.name, rows); }},
      invocation.stop);
  line.Clear();
  invocation.json ? PrintJson(report) : PrintText(report);
  for (const auto& member : report.members) {
    if (member.error) PrintError(*member.error);
  }
  return report.Failure() ? ExitCode::kFailed : ExitCode::kDone;
}

}  // namespace

void AddCapture(Program& program) {
  auto* command = program.app.add_subcommand(
      "capture", "capture declared datasets once and publish them as one basis");
  AddStoreOptions(*command, program.invocation);
  AddJsonOption(*command, program.invocation);
  const auto arguments = std::make_shared<CaptureArguments>();
  command->add_option("datasets", arguments->datasets, "datasets to capture (all)")
      ->type_name("DATASET");
  command->add_flag("--keep-going", arguments->keep_going,
                    "publish the others when a dataset fails");
  command->callback([&program, arguments] {
    program.chosen = [arguments](const Invocation& invocation) {
      return Capture(invocation, *arguments);
    };
  });
}

}  // namespace tidemark::cli
