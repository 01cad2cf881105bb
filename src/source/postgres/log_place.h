// Where a server's write-ahead log stands, and of which branch it is: every promotion and every
// restore to a point in time begins a new timeline. Manual: "Streaming Replication Protocol"
// (IDENTIFY_SYSTEM, TIMELINE_HISTORY), "Timelines".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/lsn.h"
#include "pg/connection.h"

namespace tidemark::source {

struct LogPlace {
  std::string system_identifier;
  uint32_t timeline = 0;
  base::Lsn position;  // everything before it is durable; on a standby, replayed
  /// Its history file: a line for each ancestor, with where it was left. Empty on timeline 1.
  std::string history;
};

/// Asks on a replication connection.
LogPlace InspectLog(pg::Connection& replication);

/// Where `ancestor` was left in favour of what follows it, by a history file; nullopt if it is not
/// among the ancestors. Throws 08P01 for a file that is none.
std::optional<base::Lsn> LeftAt(const std::string& history, uint32_t ancestor);

}  // namespace tidemark::source
