// The last step of a capture of several datasets: one basis for all of them, in the transaction
// that wrote their rows, then its commit. publish.h does the same for a mirror.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lsn.h"
#include "pg/connection.h"
#include "temporal/lease.h"
#include "temporal/publish.h"
#include "temporal/reduction.h"

namespace tidemark::temporal {

/// One dataset of the capture.
struct CapturedMember {
  int dataset = 0;
  bool changed = false;  // else its version is admitted again
  int64_t tx = 0;        // of the transition, or the newest one
  TransitionSummary transition;
  base::Timestamp extracted_from, extracted_to;
  std::string position;                  // a JSON object of facts
  std::optional<base::Lsn> source_lsn;   // where the source has a log
  std::optional<std::string> resume;     // JSON, for ReadSince
  std::string version;                   // set by PublishCapture, in hex
  int64_t live_rows = 0;                 // set by PublishCapture
};

/// A mirror whose slot was drained, or that was copied for the first time.
struct CapturedJournal {
  int journal = 0;
  const Lease* lease = nullptr;         // the mirror's own; outlives the publish
  std::optional<int64_t> capture;       // of a first copy, which ends with this publish
  std::vector<UpstreamCommit> commits;  // those that are not stored yet, in order
  int64_t tx_last = 0;
  base::Lsn position, received;         // the newest commit's end; nothing up to here is missing
  base::Timestamp received_time;
  std::vector<Member> members;          // what has changed
  std::vector<int> unchanged;           // datasets whose versions are admitted again
  base::Timestamp extracted_from, extracted_to;
};

struct CaptureContents {
  std::vector<CapturedMember> datasets;
  std::vector<CapturedJournal> journals;
  bool empty() const { return datasets.empty() && journals.empty(); }
};

/// Writes the basis into `tx` and commits it. Throws 55000 when the lease, or that of a mirror in
/// it, was taken over, 08007 when the outcome is unknown: then FindCaptureBasis on a new connection
/// tells.
Basis PublishCapture(pg::Transaction tx, const Lease& lease, int64_t capture,
                     CaptureContents& contents);

/// The basis of a capture, once whatever publish was under way has ended.
std::optional<Basis> FindCaptureBasis(pg::Connection& store, int64_t capture);

/// Where a dataset outside a mirror stands.
struct DatasetState {
  int64_t tx_last = 0, live_rows = 0;
  std::optional<std::string> resume;  // JSON as it was stored
};
/// nullopt before its first publish.
std::optional<DatasetState> LoadDatasetState(pg::Connection& store, int dataset);

}  // namespace tidemark::temporal
