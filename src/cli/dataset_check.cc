#include "cli/dataset_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/dataset_plan.h"
#include "cli/source_check.h"
#include "source/reader.h"

namespace tidemark::cli {
namespace {

constexpr auto kCheckLimit = std::chrono::seconds(60);

std::vector<source::Problem> ProblemsOf(const capture::PlannedDataset& dataset,
                                        const std::stop_token& stop) {
  try {
    return dataset.open()->Check({.key = dataset.key, .cursor = dataset.cursor},
                                 {.deadline = base::Deadline::After(kCheckLimit), .stop = stop});
  } catch (const base::Error& error) {
    if (stop.stop_requested()) throw;
    return {{.severity = source::Severity::kRefusesAll,
             .table = "",
             .what = error.message(),
             .fix = error.hint(),
             .state = error.state()}};
  }
}

}  // namespace

bool CheckedDataset::Refused() const {
  return std::ranges::any_of(problems, [](const source::Problem& problem) {
    return problem.severity != source::Severity::kNote;
  });
}

std::vector<CheckedDataset> CheckDatasets(const Config& config, std::stop_token stop) {
  std::vector<CheckedDataset> checked;
  for (const auto& [dataset, cadence] : PlanCadences(config)) {
    if (dataset.mirror) continue;  // CheckMirrors
    checked.push_back({dataset.name, ProblemsOf(dataset, stop)});
  }
  return checked;
}

std::string CheckText(const std::vector<CheckedDataset>& datasets) {
  std::string text;
  for (const auto& dataset : datasets) {
    text += fmt::format("dataset {}: {}\n", dataset.name,
                        dataset.Refused() ? "cannot be captured" : "can be captured");
    text += source::FormatProblems(dataset.problems);
  }
  return text;
}

nlohmann::json CheckJson(const std::vector<CheckedDataset>& datasets) {
  auto all = nlohmann::json::array();
  for (const auto& dataset : datasets) {
    all.push_back({{"dataset", dataset.name},
                   {"refused", dataset.Refused()},
                   {"problems", ProblemsJson(dataset.problems)}});
  }
  return all;
}

}  // namespace tidemark::cli
