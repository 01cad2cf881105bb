#include "cli/source_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "capture/source_connection.h"
#include "cli/dataset_plan.h"

namespace tidemark::cli {

using base::Deadline;
using source::Severity;

namespace {

constexpr auto kConnectLimit = std::chrono::seconds(15);

CheckedMirror CheckMirror(const capture::MirrorOptions& mirror, pg::Connection* store,
                          const std::stop_token& stop) {
  const auto& dsn = mirror.source_dsn;
  auto plain = capture::OpenSource(dsn, Deadline::After(kConnectLimit), stop);
  // A replication connection proves a privilege; being refused one is a finding of preflight.
  std::optional<pg::Connection> replication;
  try {
    replication = capture::OpenReplication(dsn, Deadline::After(kConnectLimit), stop);
  } catch (const base::Error&) {
    if (stop.stop_requested()) throw;
  }
  source::PreflightOptions options{.publication = mirror.publication,
                                   .slot = mirror.slot,
                                   .unknown_as_text = mirror.unknown_as_text,
                                   .only = std::nullopt,
                                   .store = store,
                                   .replication = replication ? &*replication : nullptr};
  if (mirror.only) options.only = mirror.only->relation;
  return {mirror.name, source::Preflight(plain, options)};
}

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kRefusesAll:
      return "refuses_all";
    case Severity::kRefusesTable:
      return "refuses_table";
    case Severity::kNote:
      break;
  }
  return "note";
}

}  // namespace

std::vector<CheckedMirror> CheckMirrors(const Config& config, pg::Connection* store,
                                        const std::stop_token& stop) {
  std::vector<CheckedMirror> checked;
  for (const auto& mirror : PlanMirrors(config)) {
    try {
      checked.push_back(CheckMirror(mirror, store, stop));
    } catch (base::Error& error) {
      error.AddContext(fmt::format("mirror \"{}\"", mirror.name));
      throw;
    }
  }
  return checked;
}

std::string CheckText(const std::vector<CheckedMirror>& mirrors) {
  std::string text;
  for (const auto& [name, report] : mirrors) {
    text += fmt::format("mirror {}: PostgreSQL {}, database {}, {}\n", name, report.server.version,
                        report.server.database,
                        report.Refused()
                            ? std::string("cannot be mirrored")
                            : fmt::format("{} tables can be mirrored", report.tables.size()));
    text += source::FormatProblems(report.problems);
  }
  return text;
}

nlohmann::json ProblemsJson(const std::vector<source::Problem>& problems) {
  auto all = nlohmann::json::array();
  for (const auto& problem : problems) {
    all.push_back({{"severity", SeverityName(problem.severity)},
                   {"table", problem.table},
                   {"what", problem.what},
                   {"fix", problem.fix},
                   {"sqlstate", problem.state.str()}});
  }
  return all;
}

nlohmann::json CheckJson(const std::vector<CheckedMirror>& mirrors) {
  auto all = nlohmann::json::array();
  for (const auto& [name, report] : mirrors) {
    auto tables = nlohmann::json::array();
    for (const auto& table : report.tables) {
      tables.push_back({{"name", table.relation.name.Display()},
                        {"columns", table.columns},
                        {"insert_only", table.insert_only}});
    }
    all.push_back({{"mirror", name},
                   {"refused", report.Refused()},
                   {"server", {{"version", report.server.version},
                               {"database", report.server.database}}},
                   {"publication_exists", report.publication.exists},
                   {"tables", tables},
                   {"problems", ProblemsJson(report.problems)}});
  }
  return all;
}

bool AnyRefused(const std::vector<CheckedMirror>& mirrors) {
  return std::any_of(mirrors.begin(), mirrors.end(),
                     [](const CheckedMirror& mirror) { return mirror.report.Refused(); });
}

}  // namespace tidemark::cli
