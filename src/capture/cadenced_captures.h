// Captures of datasets whenever their cadence says so, until stopped. What comes due at the same time
// is one capture and so one basis. One capture runs at a time; what comes due meanwhile runs once,
// afterwards. A capture that fails is logged, kept in the store, and tried again when it is next due.
// Runs on the caller's thread.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/cadence.h"
#include "capture/capture_plan.h"

namespace tidemark::capture {

struct CadencedDataset {
  PlannedDataset dataset;
  Cadence cadence;
};

struct CadenceOptions {
  std::string store_dsn;
  std::vector<CadencedDataset> datasets;
  /// The wall clock. One that is set back makes nothing due twice.
  std::function<base::Timestamp()> now;
};

/// Returns on stop. Throws only what makes every further capture pointless: a bug of ours.
void RunCadences(const CadenceOptions& options, std::stop_token stop);

}  // namespace tidemark::capture
