// What a PostgreSQL server says about the place and moment of a read. Runs inside the read's own
// transaction. Manual: "System Information Functions".
#pragma once

#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "source/reader.h"

namespace tidemark::source {

/// Facts, in this order: server_version, database, system_identifier and timeline (left out when
/// the server does not let us see them), in_recovery, lsn (written, or replayed on a standby),
/// snapshot (pg_current_snapshot), relation, relation_oid. Three round trips.
std::vector<Fact> LoadFacts(pg::Connection& connection, const pg::Relation& relation);

}  // namespace tidemark::source
