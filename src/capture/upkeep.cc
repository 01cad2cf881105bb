#include "capture/upkeep.h"

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "capture/source_connection.h"
#include "pg/wait.h"
#include "temporal/history.h"
#include "temporal/store.h"

namespace tidemark::capture {

namespace {

using base::Deadline;

constexpr std::chrono::seconds kInterval{5};
constexpr std::chrono::seconds kConnectMax{10};

int64_t RetainedBytes(pg::Connection& source, const std::string& slot) {
  const auto rows = source.Execute(
      R"sql(
SELECT coalesce(pg_catalog.pg_wal_lsn_diff(
         CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
              ELSE pg_catalog.pg_current_wal_lsn() END, restart_lsn), 0)::bigint
FROM pg_catalog.pg_replication_slots WHERE slot_name = $1
)sql",
      {slot});
  return rows.rows() == 1 ? rows.int64(0, 0) : -1;
}

}  // namespace

Upkeep::Upkeep(std::string source_dsn, std::string store_dsn, std::string slot,
               Progress& progress) {
  thread_ = std::jthread([source_dsn = std::move(source_dsn), store_dsn = std::move(store_dsn),
                          slot = std::move(slot), &progress](std::stop_token stop) {
    std::optional<pg::Connection> source, store;
    pg::Bell bell;
    while (!stop.stop_requested()) {
      try {
        if (!source || !source->IsOpen()) {
          source = OpenSource(source_dsn, Deadline::After(kConnectMax), stop);
        }
        progress.SetRetained(RetainedBytes(*source, slot));
        if (!store || !store->IsOpen()) {
          store = temporal::OpenStore(store_dsn, Deadline::After(kConnectMax), stop);
          store->SetLimits(std::chrono::hours(1), stop);
        }
        while (!stop.stop_requested() && temporal::SealOne(*store)) {
        }
      } catch (const base::Error& error) {
        if (!stop.stop_requested()) spdlog::warn("upkeep: {}", error.what());
        source.reset();
        store.reset();
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
