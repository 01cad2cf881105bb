// Preflight's questions about each candidate table that need the server: privileges, row-level
// security, ownership, partitions, collations of the store. One query a subject, for all tables
// at once. Used by preflight_table.cc only.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "source/postgres/preflight.h"

namespace tidemark::source {

struct TableAccess {
  bool schema_usage = true;
  bool owned = true;      // by this role or one whose rights it has
  bool filtered = false;  // row-level security would hide rows from this role
  std::set<std::string> unreadable_columns;
  std::vector<pg::Relation> leaves;  // of a partitioned table, with their kinds and identities
};

/// By table OID; holds every table of `tables`.
std::map<pg::Oid, TableAccess> LoadAccess(pg::Connection& source,
                                          std::span<const PublishedTable> tables);

/// Those collations of the carried columns (as pg::Column has them) that the store lacks.
std::set<std::string> MissingCollations(pg::Connection& store,
                                        std::span<const PublishedTable> tables);

}  // namespace tidemark::source
