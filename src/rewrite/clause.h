// The temporal clauses of one statement, found among its tokens: FOR SYSTEM_TIME …, FOR SOURCE_TIME
// …, FOR SOURCE_POSITION AS OF …, FOR ALL SYSTEM_TIME (temporal-sql.md, section 1). What a clause
// stands on, and whether its instants make sense, is not known here.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "rewrite/token.h"

namespace tidemark::rewrite {

enum class Axis { kSystemTime, kSourceTime, kSourcePosition };
enum class Form { kAsOf, kFromTo, kBetween, kSymmetric, kContained, kAll };

/// The clause's own first words, for messages: FOR SYSTEM_TIME.
std::string_view WordsOf(Axis axis);

struct Clause {
  struct Span {
    size_t begin, end;  // tokens
  };
  Axis axis = Axis::kSystemTime;
  Form form = Form::kAll;
  Span tokens{};               // FOR up to the last token of the last instant
  std::vector<Span> instants;  // one for AS OF, none for ALL, else two
};

/// True when FOR and one of the clause words stand together where a clause can stand. The statement
/// may still be plain PostgreSQL: CREATE USER MAPPING FOR system_time …
bool MayHoldClause(const TokenList& tokens, StatementRange range);

/// True when even the words after those are a clause's: FOR SYSTEM_TIME AS …
bool BeginsClause(const TokenList& tokens, StatementRange range);

/// Throws 42601 for a malformed clause, and for a bare alias after an instant with an operator.
std::vector<Clause> FindClauses(const TokenList& tokens, StatementRange range);

}  // namespace tidemark::rewrite
