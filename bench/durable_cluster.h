// A cluster as one would run it where commits must survive: fsync, full page writes and synchronous
// commits on, 512 MB of shared buffers, few checkpoints. Source and stores all have these settings,
// so that no side gains by them. Where: TMPDIR, or /tmp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bounded_run.h"
#include "tests/cluster.h"

namespace tidemark::bench {

/// What outlasts the making and the removal of a cluster.
struct HeldRun {
  BoundedRun& run;
  BoundedRun::Hold hold;
};

class DurableCluster : private HeldRun, public tests::Cluster {
 public:
  /// `settings` come after the common ones.
  explicit DurableCluster(BoundedRun& bounded, std::vector<std::string> settings = {});
  ~DurableCluster();

  /// Processor time of all its processes so far, ended ones included.
  double ProcessorSeconds() const;
  /// The position its log has reached, in bytes.
  int64_t LogBytes() const;
  /// Writes out what is dirty now, rather than during the next measurement.
  void Settle() const;
};

/// User and system time of one process, seconds; 0 when it is gone.
double ProcessorSecondsOf(int pid);
/// The most memory a process has had resident (VmHWM), bytes; 0 when it is gone.
int64_t PeakResidentBytesOf(int pid);

}  // namespace tidemark::bench
