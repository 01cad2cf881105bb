#include "capture/upkeep.h"

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "capture/slot_watch.h"
#include "capture/source_connection.h"
#include "pg/wait.h"
#include "temporal/sealing.h"
#include "temporal/snapshot_horizon.h"
#include "temporal/statistics.h"
#include "temporal/store.h"

namespace tidemark::capture {

namespace {

using base::Deadline;

constexpr std::chrono::seconds kInterval{5};
constexpr std::chrono::seconds kConnectMax{10};
// Collecting them takes up to a second of a table that changes all the time.
constexpr std::chrono::minutes kStatisticsAge{1};

// Status has it as long as it lasts; the log, when it becomes worse or better.
void LookAtSlot(pg::Connection& source, const std::string& slot, int64_t warn_bytes,
                Progress& progress) {
  const auto log = LookAtSlotLog(source, slot);
  progress.SetRetained(log.retained_bytes, log.safe_bytes.value_or(-1),
                       log.free_bytes.value_or(-1));
  const auto judged = JudgeSlotLog(log, slot, warn_bytes);
  if (!progress.SetSlot(judged.complaint)) return;
  if (!judged.complaint) {
    spdlog::info("replication slot \"{}\": its write-ahead log is out of danger", slot);
    return;
  }
  spdlog::log(judged.danger == SlotDanger::kImminent ? spdlog::level::err : spdlog::level::warn,
              "{}: {} {}", judged.complaint->message, judged.complaint->detail,
              judged.complaint->hint);
}

}  // namespace

Upkeep::Upkeep(MirrorOptions options, std::string slot, Progress& progress) {
  thread_ = std::jthread([options = std::move(options), slot = std::move(slot),
                          &progress](std::stop_token stop) {
    std::optional<pg::Connection> source, store;
    temporal::Sealer sealer(options.history);
    temporal::SnapshotHorizon horizon;
    pg::Bell bell;
    while (!stop.stop_requested()) {
      try {
        if (!source || !source->IsOpen()) {
          source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
        }
        LookAtSlot(*source, slot, options.wal_warn_bytes, progress);
        if (!store || !store->IsOpen()) {
          store = temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop);
          store->SetLimits(std::chrono::hours(1), stop);
        }
        temporal::RefreshStatistics(*store, kStatisticsAge);
        horizon.Advance(*store);
        while (!stop.stop_requested() && sealer.SealOne(*store)) {
        }
      } catch (const base::Error& error) {
        if (!stop.stop_requested()) spdlog::warn("upkeep: {}", error.what());
        source.reset();
        store.reset();
        horizon = {};  // it may be another store the next time
      }
      try {
        bell.Wait(-1, false, Deadline::After(kInterval), stop);
      } catch (const base::Error&) {
        return;  // stopped
      }
    }
  });
}

}  // namespace tidemark::capture
