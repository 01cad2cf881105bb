// How much of the source's write-ahead log a slot holds back, and whether the source is about to
// drop it, or its disk to be full: a slot that has lost its log means reading every table whole
// again, and a full disk stops the source. The judgement is pure; looking needs a plain connection.
// Manual: "pg_replication_slots", "max_slot_wal_keep_size".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/progress.h"
#include "pg/connection.h"

namespace tidemark::capture {

struct SlotLog {
  int64_t retained_bytes = -1;            // -1: there is no such slot, or it holds nothing back yet
  std::string status;                     // reserved, extended, unreserved, lost; empty: no slot
  std::optional<int64_t> safe_bytes;      // may be written before it is lost; nullopt: no limit
  std::optional<int64_t> keep_bytes_max;  // max_slot_wal_keep_size; nullopt: no limit
  std::optional<int64_t> free_bytes;      // where the source keeps its log; nullopt: not known
};

/// Two round trips.
SlotLog LookAtSlotLog(pg::Connection& source, const std::string& slot);

enum class SlotDanger { kNone, kNear, kImminent };

struct SlotJudgement {
  SlotDanger danger = SlotDanger::kNone;
  std::optional<Complaint> complaint;  // SQLSTATE 53400
};

/// Near: less than half of max_slot_wal_keep_size is left, or, where that is not limited, more than
/// `warn_bytes` are held back; or more is held back than half of what is free on the source's disk.
/// Imminent: the source drops the log at its next checkpoint, or has done so.
SlotJudgement JudgeSlotLog(const SlotLog& log, const std::string& slot, int64_t warn_bytes);

}  // namespace tidemark::capture
