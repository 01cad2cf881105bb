// One capture of declared datasets and mirrors that are not followed live: every member is read
// into its stage, then all are compared (or drained), applied and published in one store
// transaction as one basis. Runs on the caller's thread.
//
//   lease ──► what died before is cleared ──► member ─► member ─► … ──► one transaction:
//                                             read, staged             reduce + apply each, publish
//                                                │ failed                     │
//                                                └── nothing is published, or only the good ones
//                                                    (keep_going); either way the failure is kept
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/capture_plan.h"
#include "temporal/history.h"
#include "temporal/publish.h"

namespace tidemark::capture {

/// The lease of all captures; no mirror can be called so.
inline constexpr const char* kDatasetsLease = "(datasets)";

struct CaptureOptions {
  std::string store_dsn;
  std::vector<PlannedDataset> datasets;
  /// Publish the members that did not fail.
  bool keep_going = false;
  temporal::HistoryLimits history;
  /// Called now and then with how many rows of the dataset have been read.
  std::function<void(const PlannedDataset& dataset, int64_t rows)> progressed;
};

enum class MemberOutcome {
  kPublished,
  kUnchanged,     // admitted again under its version
  kFailed,
  kNotPublished,  // good, but another member failed
};

struct MemberReport {
  std::string name;
  MemberOutcome outcome = MemberOutcome::kNotPublished;
  int64_t puts = 0, deletions = 0, live_rows = 0;
  std::string version;               // in hex; empty unless published
  std::optional<base::Error> error;  // kFailed
};

struct CaptureReport {
  int64_t capture = 0;
  std::optional<temporal::Basis> basis;
  std::vector<MemberReport> members;  // in the order of the plan
  /// The first failure, with the dataset named in its context.
  std::optional<base::Error> Failure() const;
};

/// Failures of members are in the report. Throws what concerns the store or the lease: 55000 when
/// another process took over, 57014 on stop; nothing was published then. A lost connection is tried
/// again a few times before that; a commit whose outcome is unknown is asked for.
CaptureReport RunCapture(const CaptureOptions& options, std::stop_token stop);

}  // namespace tidemark::capture
