// What a mirror asks of a live PostgreSQL 14+ source before it touches anything: can the source be
// followed, which tables can, and what is in the way of the others. Reads only; nothing is created
// here (publication.h, slot.h). Runs in one REPEATABLE READ read-only transaction of the caller's
// connection, whose search_path must be empty. Manual: "Logical Replication".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"
#include "pg/relation.h"
#include "source/postgres/slot.h"
#include "source/problem.h"

namespace tidemark::source {

struct ServerFacts {
  uint64_t system_identifier = 0;  // 0 when the server would not say
  uint32_t timeline = 0;
  std::string database;
  std::string version;     // as SHOW server_version
  int version_number = 0;  // 150018
  std::string encoding;
  std::string locale_provider;  // c, i (ICU) or b (built in)
  std::string collate, ctype;
  std::string locale;  // the ICU or built-in locale, empty under libc
  bool in_recovery = false;
};

struct PublicationFacts {
  bool exists = false;
  bool all_tables = false;
  bool via_root = false;
  bool inserts = true, updates = true, deletes = true, truncates = true;
};

/// A table that will be mirrored, and how much of it.
struct PublishedTable {
  pg::Relation relation;  // as the catalog has it: generated and unpublished columns included
  /// The columns that copy and stream carry, in the relation's order: those of the publication's
  /// column list, generated ones only where the publication carries them (from 18 on).
  std::vector<std::string> columns;
  /// The publication's row filter as an SQL expression over the table's columns; the copy must
  /// apply the same.
  std::optional<std::string> row_filter;
  /// The source itself refuses, or does not publish, updates and deletes.
  bool insert_only = false;
};

struct PreflightReport {
  ServerFacts server;
  PublicationFacts publication;
  std::optional<SlotState> slot;
  std::vector<PublishedTable> tables;  // by schema and name
  std::vector<Problem> problems;       // gravest first
  bool Refused() const;
};

struct PreflightOptions {
  std::string publication = "tidemark";
  std::string slot = "tidemark";
  /// Tidemark will create the publication if it is missing: then every fit user table is listed,
  /// and what CREATE PUBLICATION needs is checked.
  bool may_create_publication = true;
  /// Types that the store lacks are no fault: their columns are text there.
  bool unknown_as_text = false;
  /// Look at this table only, and leave the others unmentioned.
  std::optional<base::QualifiedName> only;
  /// Where the mirror will be kept; without it, extensions, collations and encoding of the store
  /// are not compared. Not owned.
  pg::Connection* store = nullptr;
  /// A replication connection to the same source, if the caller has one: proves the privilege and
  /// gives the current timeline. Not owned.
  pg::Connection* replication = nullptr;
};

/// Throws only when a query fails for a reason other than those it looks for (lost connection).
/// Cost: about 25 round trips, whatever the number of tables.
PreflightReport Preflight(pg::Connection& source, const PreflightOptions& options);

/// One table of a publication as the caller's transaction sees it; nullopt when it is not published
/// or cannot be mirrored: then `problems` says why.
std::optional<PublishedTable> LoadPublishedTable(pg::Connection& source,
                                                 const PreflightOptions& options, pg::Oid table,
                                                 std::vector<Problem>& problems);

/// An aligned table of severity, table, problem and fix, one line each with a heading; empty when
/// there is no problem.
std::string FormatProblems(const std::vector<Problem>& problems);

}  // namespace tidemark::source
