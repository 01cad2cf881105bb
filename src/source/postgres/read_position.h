// What a PostgreSQL server says about the place and moment of a read. Runs inside the read's own
// transaction. Manual: "System Information Functions".
#pragma once

#include <vector>

#include "base/lsn.h"
#include "pg/connection.h"
#include "pg/relation.h"
#include "source/reader.h"

namespace tidemark::source {

/// Facts, in this order: server_version, database, system_identifier and timeline (left out when
/// the server does not let us see them), in_recovery, lsn (written, or replayed on a standby),
/// snapshot (pg_current_snapshot), relation, relation_oid. Three round trips.
std::vector<Fact> LoadFacts(pg::Connection& connection, const pg::Relation& relation);

/// Where the server's log ends: every commit that has been reported to its client ends at or before
/// it, and a walsender that has sent everything has reached it.
///
/// A walsender sends what is on the disk. Log that nobody has asked to be there, as of a
/// transaction that still runs, would hold up whoever waits for it until the server's next
/// checkpoint or its own entry of every 15 seconds. So the end of what is on the disk is returned
/// where the log lies beyond it for longer than a commit's may (synchronous_commit = off): three
/// rounds of the WAL writer, by default 0.6 s; that long it waits.
base::Lsn CurrentEnd(pg::Connection& connection);

}  // namespace tidemark::source
