// What the store knows of how capturing goes, as numbers for those who watch it. Reads rows of the
// control tables that exist once a journal or dataset, never the bases or their members one by one.
// One thread (the connection's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"

namespace tidemark::temporal {

/// One mirror. Nothing is known of its stream before its process has said something.
struct MirrorMeasures {
  std::string name, source, state;
  bool alive = false;      // streams or copies, and has said so within the last half minute
  bool readable = false;   // its first copy is published
  std::optional<double> heartbeat_age_seconds, lag_bytes, lag_seconds, retained_bytes,
      slot_safe_bytes, log_free_bytes;
  std::optional<double> basis_age_seconds;  // of its newest publish
  int64_t commits = 0;     // the upstream's, applied so far; the first copy is one
  int64_t failures = 0;    // how often following has failed
};

/// One dataset outside mirrors, as far as it is captured.
struct CaptureMeasures {
  std::string dataset, source, strategy;
  int64_t captures = 0, failures = 0;  // published ones, unchanged ones too; failed ones
  double capture_seconds = 0;          // reading, of all that were published
  std::optional<double> last_capture_seconds, basis_age_seconds;
  bool failing = false;                // it has failed since it was last published
};

/// One dataset's rows, in a mirror or outside.
struct RowMeasures {
  std::string dataset, journal;
  int64_t live_rows = 0, puts = 0, deletions = 0;  // puts and deletions of all publishes
};

struct Measures {
  std::string store_id;
  int64_t last_basis = 0;
  std::optional<double> last_basis_age_seconds;
  double notification_queue_usage = 0;  // 0 to 1
  std::vector<MirrorMeasures> mirrors;
  std::vector<CaptureMeasures> captures;
  std::vector<RowMeasures> rows;
};

/// Four round trips in one snapshot.
Measures LoadMeasures(pg::Connection& store);

}  // namespace tidemark::temporal
