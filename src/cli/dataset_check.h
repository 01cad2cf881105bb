// Preflight of the datasets outside mirrors, for `check`: asks each source about its relation,
// creates nothing. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/config.h"
#include "source/problem.h"

namespace tidemark::cli {

struct CheckedDataset {
  std::string name;
  std::vector<source::Problem> problems;
  bool Refused() const;
};

/// In the order of the configuration; a source that cannot be reached is a problem of its datasets.
/// Throws 0A000 for a dataset that this version cannot capture.
std::vector<CheckedDataset> CheckDatasets(const Config& config, std::stop_token stop);

/// A line a dataset, then the table of its problems and fixes.
std::string CheckText(const std::vector<CheckedDataset>& datasets);
/// [{dataset, refused, problems: [{severity, table, what, fix, sqlstate}]}]
nlohmann::json CheckJson(const std::vector<CheckedDataset>& datasets);

}  // namespace tidemark::cli
