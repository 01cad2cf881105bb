// From the datasets of the configuration to what a capture does: which are meant, where their sources
// are, and what this version cannot capture.
#pragma once

#include <string>
#include <vector>

#include "capture/capture_plan.h"
#include "cli/config.h"

namespace tidemark::cli {

/// The datasets called `names`, or all when there are none. Contacts nothing. Throws F0000 for a name
/// that is not declared, naming the nearest one, and when there is nothing to capture; 0A000 for a
/// mirror and for the strategy cdc.
std::vector<capture::PlannedDataset> PlanDatasets(const Config& config,
                                                  const std::vector<std::string>& names);

}  // namespace tidemark::cli
