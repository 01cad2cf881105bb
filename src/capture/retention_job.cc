#include "capture/retention_job.h"

#include "base/error.h"
#include "base/log.h"
#include "pg/wait.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using base::Timestamp;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::seconds kReadersMax{60};  // waited for in one go
constexpr std::chrono::hours kStatementMax{1};

Timestamp Later(Timestamp at, std::chrono::seconds by) {
  return Timestamp(at.postgres_us() + std::chrono::microseconds(by).count());
}

// False when something failed.
bool PruneOnce(const RetentionOptions& options, const std::stop_token& stop) {
  try {
    auto store =
        temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop);
    store.SetLimits(kStatementMax, stop);
    for (const auto& pruned :
         temporal::Prune(store, options.retentions, Deadline::After(kReadersMax), stop)) {
      if (pruned.waits) {
        spdlog::info("retention of {}: an older reader holds history back", pruned.table.Display());
      } else if (pruned.partitions > 0) {
        spdlog::info("retention of {}: {} partitions dropped, readable since {}",
                     pruned.table.Display(), pruned.partitions, pruned.horizon);
      }
    }
    return true;
  } catch (const Error& error) {
    if (!stop.stop_requested()) spdlog::warn("retention: {}", error.Full());
    return false;
  }
}

}  // namespace

void KeepRetention(const RetentionOptions& options, std::stop_token stop) {
  pg::Bell bell;
  Timestamp due = Later(options.now(), options.first_after);
  while (!stop.stop_requested()) {
    if (options.now() >= due) {
      const bool done = PruneOnce(options, stop);
      due = Later(options.now(), done ? options.every : options.again_after);
    }
    try {
      bell.Wait(-1, false, Deadline::After(options.look_every), stop);
    } catch (const Error&) {
      return;  // stopped
    }
  }
}

}  // namespace tidemark::capture
