// What one mirror is: a publication of a PostgreSQL source and where its changes are kept. A value,
// made by cli from the configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/identifier.h"
#include "pg/connection.h"
#include "temporal/history.h"
#include "temporal/types.h"

namespace tidemark::capture {

struct MirrorOptions {
  std::string name;         // of the mirror
  std::string source_dsn;
  std::string store_dsn;
  std::string publication = "tidemark";
  std::string slot;         // empty: SlotNameFor(name)
  bool may_create_publication = true;
  int copy_workers = 0;     // 0: one per core, at most 8
  temporal::HistoryLimits history;
  /// Of a backlog, at most about so many changes are applied and published together. A larger
  /// transaction is applied in parts, and published as one.
  size_t batch_changes = 50'000;
  /// What the source has lost for us (a slot that is gone) is made good by reading every table
  /// whole again; false: only once a person asks for it.
  bool resync_on_gap = true;
  /// Where the source sends text in no known encoding (SQL_ASCII): '?' takes the place of each byte
  /// that is not UTF-8; false: the mirror stops at it.
  bool replace_undecodable = false;
  /// Columns of types that the store lacks are text there, and all values travel as text; false:
  /// their tables are left out.
  bool unknown_as_text = false;

  /// A table whose changes the store refuses is read whole again, as often as it takes, while the
  /// others go on; false: the mirror stops at that commit.
  bool isolate_failed_tables = false;
  /// More of the source's log held back than this is warned of where the source has no limit of its
  /// own.
  int64_t wal_warn_bytes = int64_t{10} << 30;

  /// One relation of the publication, under a name of its own: a dataset of strategy cdc.
  struct Only {
    base::QualifiedName relation, in_store;
  };
  /// nullopt: everything that is published, under its own name.
  std::optional<Only> only;
};

/// What is done about the values that `source`, a session of it, sends to `store`.
temporal::TypeOptions TypeOptionsOf(const pg::Connection& source, const pg::Connection& store,
                                    const MirrorOptions& options);

/// The slot's name for a mirror: `tidemark_` and the name in lower case, other characters than
/// a-z, 0-9 and _ as _; cut to PostgreSQL's 63 bytes.
std::string SlotNameFor(const std::string& mirror);

/// `options` with slot and workers filled in where they were left open.
MirrorOptions Completed(MirrorOptions options);

}  // namespace tidemark::capture
