// From the datasets and mirrors of the configuration to what a capture does: which are meant, where
// their sources are, and which are followed live instead.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "capture/capture_plan.h"
#include "capture/mirror_options.h"
#include "cli/config.h"
#include "temporal/history.h"
#include "temporal/prune.h"

namespace tidemark::cli {

/// The datasets and mirrors called `names`, or all that are not followed live when there are none.
/// Contacts nothing. Throws F0000 for a name that is not declared, naming the nearest one, and when
/// there is nothing to capture; 0A000 for what is followed live.
std::vector<capture::PlannedDataset> PlanDatasets(const Config& config,
                                                  const std::vector<std::string>& names);

/// All mirrors, and the datasets of strategy cdc, however they are captured.
std::vector<capture::MirrorOptions> PlanMirrors(const Config& config);

/// What is followed live: mirrors and datasets of strategy cdc without a cadence.
std::vector<capture::MirrorOptions> PlanLive(const Config& config, const std::string& store_dsn);

/// Each dataset and mirror that is not followed live, with its own cadence or, a dataset, the
/// common one; empty when it has none.
std::vector<std::pair<capture::PlannedDataset, std::string>> PlanCadences(const Config& config);

/// How long the history of each mirror and dataset is kept; those that keep it for ever are left
/// out.
std::vector<temporal::Retention> PlanRetentions(const Config& config);

/// How partitions of history are made, by how long history is kept.
temporal::HistoryLimits PlanHistory(const Config& config);

}  // namespace tidemark::cli
