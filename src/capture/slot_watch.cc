#include "capture/slot_watch.h"

#include <fmt/format.h>

#include "source/postgres/log_space.h"

namespace tidemark::capture {

namespace {

constexpr const char* kSqlState = "53400";  // configuration_limit_exceeded

constexpr const char* kLook = R"sql(
SELECT coalesce(pg_catalog.pg_wal_lsn_diff(
         CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
              ELSE pg_catalog.pg_current_wal_lsn() END, s.restart_lsn), -1)::bigint,
       coalesce(s.wal_status, ''), s.safe_wal_size,
       (SELECT nullif(g.setting::bigint, -1) * 1048576 FROM pg_catalog.pg_settings g
        WHERE g.name = 'max_slot_wal_keep_size')
FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1
)sql";

std::string Megabytes(int64_t bytes) { return fmt::format("{} MB", (bytes + 524'288) / 1'048'576); }

}  // namespace

SlotLog LookAtSlotLog(pg::Connection& source, const std::string& slot) {
  const auto row = source.Execute(kLook, {slot});
  SlotLog log;
  log.free_bytes = source::FreeLogBytes(source);
  if (row.rows() == 0) return log;
  log.retained_bytes = row.int64(0, 0);
  log.status = row.str(0, 1);
  if (!row.is_null(0, 2)) log.safe_bytes = row.int64(0, 2);
  if (!row.is_null(0, 3)) log.keep_bytes_max = row.int64(0, 3);
  return log;
}

SlotJudgement JudgeSlotLog(const SlotLog& log, const std::string& slot, int64_t warn_bytes) {
  const char* hint =
      "Let the mirror catch up: see its state and what holds it up. Or give the source a greater "
      "max_slot_wal_keep_size.";
  if (log.status == "unreserved" || log.status == "lost") {
    return {SlotDanger::kImminent,
            Complaint{kSqlState,
                      fmt::format("replication slot \"{}\" {}", slot,
                                  log.status == "lost" ? "has lost its write-ahead log"
                                                       : "loses its write-ahead log at the "
                                                         "source's next checkpoint"),
                      fmt::format("It holds back {}.", Megabytes(log.retained_bytes)), hint, "",
                      false}};
  }
  const bool limited = log.keep_bytes_max && log.safe_bytes;
  if (limited && *log.safe_bytes < *log.keep_bytes_max / 2) {
    return {SlotDanger::kNear,
            Complaint{kSqlState,
                      fmt::format("replication slot \"{}\" is going to lose its write-ahead log",
                                  slot),
                      fmt::format("It holds back {}; {} of max_slot_wal_keep_size are left.",
                                  Megabytes(log.retained_bytes), Megabytes(*log.safe_bytes)),
                      hint, "", false}};
  }
  if (log.free_bytes && log.retained_bytes > *log.free_bytes / 2) {
    return {SlotDanger::kNear,
            Complaint{kSqlState,
                      fmt::format("replication slot \"{}\" may fill the disk of the source's "
                                  "write-ahead log",
                                  slot),
                      fmt::format("It holds back {}; {} are free there.",
                                  Megabytes(log.retained_bytes), Megabytes(*log.free_bytes)),
                      "Let the mirror catch up: see its state and what holds it up. A "
                      "max_slot_wal_keep_size at the source bounds what is held back.",
                      "", false}};
  }
  if (limited || log.retained_bytes <= warn_bytes) return {};
  return {SlotDanger::kNear,
          Complaint{kSqlState,
                    fmt::format("replication slot \"{}\" holds back much of the source's "
                                "write-ahead log",
                                slot),
                    fmt::format("It holds back {}, and the source has no max_slot_wal_keep_size: "
                                "its disk may fill up.",
                                Megabytes(log.retained_bytes)),
                    "Let the mirror catch up: see its state and what holds it up. A "
                    "max_slot_wal_keep_size at the source bounds what is held back.",
                    "", false}};
}

}  // namespace tidemark::capture
