// What one mirror is: a publication of a PostgreSQL source and where its changes are kept. A value,
// made by cli from the configuration.
#pragma once

#include <optional>
#include <string>

#include "base/identifier.h"
#include "temporal/history.h"

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
  /// What the source has lost for us (a slot that is gone) is made good by reading every table whole
  /// again; false: only once a person asks for it.
  bool resync_on_gap = true;

  /// One relation of the publication, under a name of its own: a dataset of strategy cdc.
  struct Only {
    base::QualifiedName relation, in_store;
  };
  /// nullopt: everything that is published, under its own name.
  std::optional<Only> only;
};

/// The slot's name for a mirror: `tidemark_` and the name in lower case, other characters than
/// a-z, 0-9 and _ as _; cut to PostgreSQL's 63 bytes.
std::string SlotNameFor(const std::string& mirror);

/// `options` with slot and workers filled in where they were left open.
MirrorOptions Completed(MirrorOptions options);

}  // namespace tidemark::capture
