// What one statement is to a session that is pinned to the past: one that reads, one that writes,
// or one whose reading cannot be pinned. Told by its parse tree alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "rewrite/token.h"

namespace tidemark::rewrite {

struct PinnedStatement {
  std::string write;       // the command as messages name it, when it writes or defines
  std::string unpinnable;  // the message of a refusal: it may read where no rewriter reaches
};

/// `tree` is the statement's node, e.g. {"SelectStmt": {…}}, made from the tokens of `range`.
PinnedStatement ReadPinnedStatement(const nlohmann::json& tree, const TokenList& tokens,
                                    StatementRange range);

/// True for BEGIN and START TRANSACTION: what tidemark.await names is to be waited for before them,
/// as the transaction's snapshot may be its only one.
bool BeginsTransaction(const TokenList& tokens, StatementRange range);

}  // namespace tidemark::rewrite
