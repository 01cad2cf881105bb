// Captures of datasets whenever one is due, until stopped: because their cadence says so, or
// because an occurrence asks for it (occurrences.h). What comes due by cadence at the same time is
// one capture and so one basis; what an occurrence asks for is captured by itself. One capture runs
// at a time; what comes due meanwhile runs once, afterwards. A capture by cadence that fails is
// logged, kept in the store, and tried again when it is next due. Runs on the caller's thread.
//
//   due by cadence ──► claim its occurrences, capture, settle them ─┐
//      ▲                                                            ▼
//      └── wait ◄── nothing is due ◄── each queued dataset: claim, capture, settle
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/cadence.h"
#include "capture/capture_plan.h"
#include "temporal/history.h"

namespace tidemark::capture {

struct CadencedDataset {
  PlannedDataset dataset;
  std::optional<Cadence> cadence;  // nullopt: by occurrence only
};

struct CadenceOptions {
  std::string store_dsn;
  std::vector<CadencedDataset> datasets;
  /// Of what is due together, publish what did not fail: a declared partial group.
  bool keep_going = false;
  temporal::HistoryLimits history;
  /// The wall clock. One that is set back makes nothing due twice.
  std::function<base::Timestamp()> now;
};

/// Returns on stop. Throws only what makes every further capture pointless: a bug of ours.
void RunCadences(const CadenceOptions& options, std::stop_token stop);

}  // namespace tidemark::capture
