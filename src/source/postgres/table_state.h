// What the catalog of a source says now of the tables that a publication has: their names, all the
// columns they ever had, and a text that changes whenever their rows may have changed without the
// stream telling. Reads only. Manual: "System Catalogs".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"
#include "pg/relation.h"

namespace tidemark::source {

struct TableColumn {
  int number = 0;
  std::string name;  // empty: dropped
  pg::Oid type = 0;
  int modifier = -1;
  std::string type_sql;
  bool not_null = false;
};

/// Where a table's, or a leaf partition's, rows lie, and which transaction put them there.
struct TableFile {
  pg::Oid relation = 0;
  uint32_t file_node = 0;
  uint32_t xid = 0;  // of the newest change of its pg_class row
};

struct TableState {
  pg::Oid oid = 0;
  base::QualifiedName name;
  std::vector<TableFile> files;  // by relation
  std::string rules;             // row filter and column list
  std::string attributes;        // which transactions last changed its columns
  std::map<pg::Oid, std::string> labels;  // of the enums of its columns, by pg_enum.oid
  std::set<int> not_null;                 // numbers of columns; no part of the text

  /// One line for each fact, to be kept.
  std::string Text() const;
};

/// Whether rows may have changed unseen between what was kept and now. What rewrites a table's rows
/// changes both where they lie and its columns; TRUNCATE, which the stream tells, CLUSTER and
/// VACUUM FULL change only where they lie. Of a partitioned table a leaf may have been truncated by
/// itself, which the stream does not tell: `truncating_xids` are those whose TRUNCATE of the table
/// it told.
enum class StateChange { kNone, kExplained, kRows };
StateChange CompareStates(const std::string& kept, const TableState& now,
                          const std::set<uint32_t>& truncating_xids);

/// The tables that `publication` has, by OID, each as a partition root where it publishes roots.
/// Two round trips.
std::vector<TableState> LoadTableStates(pg::Connection& source, const std::string& publication);

struct TableColumns {
  /// All, dropped ones too, by number; of generated ones those that can be published.
  std::vector<TableColumn> columns;
  /// By number: what rows older than the column read in it, an SQL expression.
  std::map<int, std::string> missing;
};

/// Empty when the table is gone.
TableColumns LoadTableColumns(pg::Connection& source, pg::Oid table);

/// A table's columns, all of one moment.
struct SeenColumns {
  std::string snapshot;  // pg_current_snapshot()
  TableColumns columns;
  std::set<std::string> published;  // names of those that are sent; empty: it is not published

  /// Whether what transaction `xid` did to the table is in it. A transaction is sent once its
  /// commit is in the log, and seen by others only later: with synchronous standbys much later.
  bool Includes(uint32_t xid) const;
};

/// nullopt: they changed meanwhile. Names are the catalog's newest where a publication is asked for
/// them, and the statement's snapshot's elsewhere: one that changes would be in neither.
std::optional<SeenColumns> SeeColumns(pg::Connection& source, const std::string& publication,
                                      pg::Oid table);

}  // namespace tidemark::source
