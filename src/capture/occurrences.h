// The occurrences of the datasets that a process captures: which of them ask for a capture now,
// which a capture answers, and what becomes of them by its outcome. Keeps a connection to the
// store, whose session holds what is claimed: when the process dies, the store gives it back.
//
// A claim is made before the capture contacts its source. So whatever arrives later stays queued,
// all of it for one more capture, and no change that was told of is missed. Owned by one thread.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/capture_run.h"
#include "pg/connection.h"
#include "pg/notification_stream.h"
#include "temporal/occurrence.h"

namespace tidemark::capture {

class Occurrences {
 public:
  /// `datasets` are the declared names of what this process captures.
  Occurrences(std::string store_dsn, std::vector<std::string> datasets, std::stop_token stop);

  /// Datasets for which a capture is asked for now, longest waiting first. None while the store is
  /// away, which is logged.
  std::vector<std::string> Queued();

  /// Returns when some may have been queued, and after `most` at the latest; on stop at once.
  void Await(std::chrono::milliseconds most);

  /// Claims what is queued of `datasets` for the capture that is about to begin. False when nothing
  /// could be claimed.
  bool Claim(const std::vector<std::string>& datasets);

  /// What was claimed is done where its dataset was published, or found unchanged. Of a member that
  /// failed it goes back into the queue, after a growing pause, if its failure may pass by itself;
  /// else it has failed, too. Of one that was held back by another it goes back at once.
  void Settle(const CaptureReport& report);
  /// The capture as a whole failed: all that was claimed goes back into the queue.
  void Settle(const base::Error& error);

 private:
  pg::Connection& Store();
  void Lose(const base::Error& error);
  void SettleOne(const temporal::OccurrenceClaim& claim, const CaptureReport& report);

  std::string store_dsn_;
  std::vector<std::string> datasets_;
  std::stop_token stop_;
  std::optional<pg::Connection> store_;
  std::optional<pg::NotificationStream> wake_;  // only while nothing is captured
  std::vector<temporal::OccurrenceClaim> claims_;
  bool lost_ = false;  // and that has been said
};

}  // namespace tidemark::capture
