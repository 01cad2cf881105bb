// Requests to read mirrored tables whole again, kept in the store: asked for by a person or by the
// follower itself, met by the follower, watched by `tidemark resync`. One round trip each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"

namespace tidemark::temporal {

struct ResyncState {
  int64_t request = 0;
  base::QualifiedName table;
  bool ended = false;
  std::optional<int64_t> basis;  // where it was published
  int64_t puts = 0, deletions = 0;
  std::string sqlstate, error;   // of the last try that failed; empty
};

/// Asks for the mirrored tables called `names`, or for all when there are none; one that has been
/// asked for already is not asked for twice. Returns the requests. Throws 42P01 for a table that is
/// not mirrored.
std::vector<int64_t> RequestResync(pg::Connection& store,
                                   const std::vector<base::QualifiedName>& names);

/// In the order of the tables' names.
std::vector<ResyncState> LoadResyncs(pg::Connection& store, const std::vector<int64_t>& requests);

}  // namespace tidemark::temporal
