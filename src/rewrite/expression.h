// Where an expression that starts at a given token ends. Needed because PostgreSQL's grammar cannot
// be asked: the expression stands inside a clause it does not know. Reads operands and operators
// only as far as needed to find the end; the expression itself is judged by the grammar afterwards.
#pragma once

#include <cstddef>

#include "rewrite/token.h"

namespace tidemark::rewrite {

struct ExpressionExtent {
  size_t end;    // one past the last token
  bool primary;  // a literal, parameter, cast, call or parenthesised; no operator at the top
};

/// The longest expression at `begin` made of literals, $n, names, calls, casts, brackets,
/// operators and AT TIME ZONE. AND, OR, comparisons by keyword and TO are not part of it.
/// Throws 42601 where an operand is missing.
ExpressionExtent MeasureExpression(const TokenList& tokens, size_t begin, size_t end);

}  // namespace tidemark::rewrite
