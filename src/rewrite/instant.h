// One instant of a temporal clause: its text as the client wrote it, and what must be known of it
// to evaluate it the right number of times. Judged by PostgreSQL's grammar, without a catalog.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/clause.h"
#include "rewrite/references.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {

enum class InstantKind {
  kLiteral,    // a constant already when the statement is planned
  kPerRow,     // refers to columns of earlier FROM items
  kParameter,  // refers to $n
  kStable,     // anything else: the same for the whole statement
};

struct Instant {
  struct Call {
    std::string name;  // as to_regproc() reads it
    size_t offset;
  };
  size_t begin, end;  // bytes
  InstantKind kind = InstantKind::kStable;
  bool present = false;  // may mean the time of execution, as now() does
  std::vector<Call> calls;
  std::vector<ColumnReference> columns;  // those with a schema; their level is not filled in
};

/// What messages call an instant of `axis`: FOR SYSTEM_TIME instant.
std::string InstantOf(Axis axis);

/// Throws 42601 for what is no expression, 0A000 for sub-queries, aggregates and window functions,
/// 22004 for a literal NULL, 42804 for a constant that cannot be an instant of `axis`.
Instant ReadInstant(std::string_view sql, const TokenList& tokens, Clause::Span span, Axis axis);

}  // namespace tidemark::rewrite
