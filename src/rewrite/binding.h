// Which clause stands on which table reference of one statement, and the refusals of those that
// stand where they cannot (temporal-sql.md, section 3).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "rewrite/clause.h"
#include "rewrite/references.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {

struct Bytes {
  size_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// A table reference with the places of its parts in the text.
struct BoundTable {
  TableReference table;
  Bytes whole;          // from ONLY or the name to the end of alias, clause and TABLESAMPLE
  Bytes name;           // as written, with its schema
  Bytes alias;          // [AS] alias [(columns)], empty without
  Bytes table_command;  // the word TABLE of the TABLE command, empty without
  std::vector<Bytes> only;  // ONLY and the brackets that belong to it
  struct Sample {
    std::string_view method;  // in the client's spelling
    Bytes arguments;          // between the brackets
    Bytes seed;               // of REPEATABLE, empty without
  };
  std::optional<Sample> sample;
};

struct BoundClause : BoundTable {
  Clause clause;
};

/// The references that carry no clause and read a relation by its name (no CTE), in the order of
/// the text.
std::vector<BoundTable> BindTables(std::string_view sql, const TokenList& tokens,
                                   StatementRange range, const std::vector<Clause>& clauses,
                                   const References& references);

/// In the order of the text. Throws 42601 for a clause on a target, two on one reference and one
/// that follows no table; 0A000 for CTEs, sub-selects, functions, joins, TABLESAMPLE and row locks.
std::vector<BoundClause> BindClauses(std::string_view sql, const TokenList& tokens,
                                     StatementRange range, const std::vector<Clause>& clauses,
                                     const References& references);

/// Throws what is to be said of a clause (its FOR is token `at`) that stands on no table's name.
[[noreturn]] void RefuseMisplaced(std::string_view sql, const TokenList& tokens,
                                  StatementRange range, const Clause& clause);

}  // namespace tidemark::rewrite
