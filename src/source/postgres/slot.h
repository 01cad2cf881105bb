// Logical replication slots of a source: made together with their exported snapshot, looked at,
// dropped. Not the stream that reads one (pg/replication_stream.h). Creating needs a replication
// connection; everything else needs a plain one. Manual: "Streaming Replication Protocol",
// "pg_replication_slots".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lsn.h"
#include "pg/connection.h"

namespace tidemark::source {

/// A slot as it was born. The snapshot can be adopted (SET TRANSACTION SNAPSHOT) until the
/// replication connection runs its next command or closes.
struct CreatedSlot {
  base::Lsn consistent_point;
  std::string snapshot;
};

/// One transaction that a slot's creation waits for.
struct SlotBlocker {
  int pid = 0;              // 0: a prepared transaction
  std::string transaction;  // its xid, or the name it was prepared under
  std::string user;
  std::string application;
  std::string since;  // when it began, with time zone; empty when we may not see it
  /// On a standby: not a transaction of its own, but that its primary has not logged yet which ones
  /// run there.
  bool at_primary = false;

  /// "waiting for transaction of pid 123, open since 2026-11-28 12:00:00+00 (user app)"
  std::string Describe() const;
};

struct SlotRequest {
  std::string name;
  bool temporary = false;  // gone with the replication connection
  base::Deadline deadline = base::Deadline::Never();
  std::stop_token stop;
  /// Called about once a second while creation waits, on the calling thread. May be empty.
  std::function<void(const std::vector<SlotBlocker>&)> on_wait;
};

/// Creates a pgoutput slot on `replication` and exports its snapshot. Waits for every transaction
/// that is open now, while `plain`, another connection to the same server, watches for which. A
/// lasting slot of a primary from PostgreSQL 17 on is a failover slot: standbys may keep it.
///
///     absent ──► creating ──► created (durable, unless temporary)
///                   └── deadline, stop or lost line ──► walsender ended, half slot dropped ──►
///                   absent
///
/// Throws 42710 if the slot exists, 57014 after the deadline or a stop, naming what was waited
/// for; nothing is then left behind on the source, `replication` is of no further use, and the
/// limits of `plain` have been set anew.
CreatedSlot CreateSlot(pg::Connection& replication, pg::Connection& plain,
                       const SlotRequest& request);

/// What holds up the slot that the backend `walsender_pid` is creating: empty when it is not
/// waiting for a transaction. One round trip.
std::vector<SlotBlocker> WhoBlocksSlot(pg::Connection& plain, int walsender_pid);

struct SlotState {
  std::string plugin;    // empty for a physical slot
  std::string database;  // empty for a physical slot
  std::optional<int> active_pid;
  base::Lsn restart_lsn;          // not valid() when the slot reserves nothing
  base::Lsn confirmed_flush_lsn;  // not valid() while the slot is being created
  std::string wal_status;         // reserved, extended, unreserved, lost
  bool two_phase = false;
  bool temporary = false;
  bool failover = false;  // standbys keep a copy of it (from PostgreSQL 17 on)
  bool lost() const { return wal_status == "lost"; }
};

/// The slot as the server shows it now, or nullopt if there is none of that name.
std::optional<SlotState> InspectSlot(pg::Connection& plain, const std::string& name);

/// Drops the slot; no slot is success. While it is active, waits until the deadline and then
/// throws 55006 naming the pid that uses it.
void DropSlot(pg::Connection& plain, const std::string& name, base::Deadline deadline);

}  // namespace tidemark::source
