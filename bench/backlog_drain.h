// One backlog and those who drain it, each into a cluster of its own and alone: pg_recvlogical,
// which only receives it; PostgreSQL's own subscription, which keeps no history; Tidemark. Each has
// a slot from before the backlog was written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bounded_run.h"
#include "bench/command_line.h"
#include "bench/durable_cluster.h"
#include "bench/ledger.h"
#include "bench/mirror_process.h"
#include "bench/native_subscription.h"

namespace tidemark::bench {

/// What one peer needed for one part of the backlog.
struct Cost {
  double seconds = 0;
  double source_cpu = 0, process_cpu = 0, store_cpu = 0;
  int64_t store_log_bytes = 0;
};

struct Drained {
  Cost single, bulk;
  bool parted = true;  // false: only their sums are known
  int64_t peak_resident = 0;
  double hot_share = -1;
};

class BacklogDrain {
 public:
  /// `statements`: also print what the store's statements cost while Tidemark drains.
  /// `native_history`: the subscription's table keeps its former rows by a trigger.
  BacklogDrain(BoundedRun& run, const CommandLine& line, const Backlog& backlog, bool statements,
               bool native_history = false);

  /// Fills the source and lets the peers copy it.
  void Prepare();
  /// `round` counts from 1; each has changes of its own.
  void WriteBacklog(int64_t round);

  Drained ByRecvlogical();
  Drained BySubscription();
  Drained ByTidemark();

  /// Count and hash of the rows. Throws when the peers' rows are not the source's.
  std::string Verify();

 private:
  // One part of the backlog ends at each.
  struct Mark {
    int64_t value = 0;
    base::Lsn end;
  };
  class Meter;
  template <typename Check>
  Drained Watch(pg::Connection& on, Meter& meter, Check check);
  std::unique_ptr<MirrorProcess> Mirror();
  void Settle();
  std::string Contents(pg::Connection& on) const;

  const CommandLine& line_;
  Backlog backlog_;
  bool statements_, native_history_;
  DurableCluster source_cluster_, native_cluster_, store_cluster_;
  pg::Connection source_, native_, store_;
  std::optional<NativeSubscription> subscription_;
  std::string current_;  // Tidemark's table of current rows
  Mark single_, bulk_;
};

}  // namespace tidemark::bench
