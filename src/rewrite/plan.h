// What Analyze found in a text, kept for Render.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rewrite/binding.h"
#include "rewrite/edit.h"
#include "rewrite/instant.h"
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
  /// One for each of Statement::references(): a clause, or the edits of a COPY.
  struct Entry {
    std::optional<TemporalReference> temporal;
    std::vector<Edit> copy;
    size_t statement = 0;  // index into `statements`
  };
  /// One statement of the text.
  struct Part {
    StatementKind kind = StatementKind::kUtility;
    size_t begin = 0;  // byte of its first token
  };

  std::string client;
  std::vector<Part> statements;
  std::vector<Entry> entries;
  std::vector<ColumnReference> columns;
  QueryLevels levels;
};

}  // namespace tidemark::rewrite
