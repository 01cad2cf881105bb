// When a statement is planned, as against when its snapshot is taken: it decides whether an instant
// of the present needs a publish in flight to be let finish first.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "rewrite/token.h"

namespace tidemark::rewrite {

enum class StatementKind {
  kQuery,    // planned before its snapshot is taken
  kUtility,  // its query is planned and run in a snapshot that was taken before: COPY, DECLARE, …
  kPrepare,  // its query runs later
  kExecute,  // runs a query that was prepared in SQL
};

/// `tree` is the statement's node, e.g. {"SelectStmt": {…}}; never kExecute.
StatementKind KindOf(const nlohmann::json& tree);

/// True for a statement that reads as it runs, as against one that keeps its query for later.
bool RunsAtOnce(const nlohmann::json& tree);

/// The prepared statement named by EXECUTE, EXPLAIN … EXECUTE or CREATE TABLE … AS EXECUTE, told by
/// their words; as written. nullopt for any other statement.
std::optional<std::string> ExecutedBy(const TokenList& tokens, StatementRange range);

/// True when a table reference of it may begin with ONLY.
bool HoldsOnly(const TokenList& tokens, StatementRange range);

}  // namespace tidemark::rewrite
