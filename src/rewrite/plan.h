// What Analyze found in a text, kept for Render.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "rewrite/binding.h"
#include "rewrite/edit.h"
#include "rewrite/instant.h"
#include "rewrite/pinned_statement.h"
#include "rewrite/references.h"
#include "rewrite/statement_kind.h"

namespace tidemark::rewrite {

struct Plan {
  struct TemporalReference {
    BoundClause bound;
    std::vector<Instant> instants;
    /// Parallel to `instants`: its place in evaluable_instants().
    std::vector<std::optional<size_t>> evaluable;
  };
  /// One for each of Statement::references(): a clause, or a table without one; `copy` are the
  /// edits of a COPY of that table.
  struct Entry {
    std::optional<TemporalReference> temporal;
    std::optional<BoundTable> plain;
    std::vector<Edit> copy;
    size_t statement = 0;  // index into `statements`
    const BoundTable& table() const { return temporal ? temporal->bound : *plain; }
  };
  /// One statement of the text.
  struct Part {
    StatementKind kind = StatementKind::kUtility;
    size_t begin = 0;  // byte of its first token
    PinnedStatement pinned = {};
    std::optional<base::Error> unreadable = {};  // why nothing is known of it
    std::string executes = {};                   // the prepared statement that EXECUTE names
  };

  std::string client;
  bool pins = false;  // the session may be pinned
  std::vector<Part> statements;
  std::vector<Entry> entries;
  std::vector<ColumnReference> columns;
  QueryLevels levels;
};

}  // namespace tidemark::rewrite
