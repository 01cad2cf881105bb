// One statement as PostgreSQL's grammar (libpg_query) reads it: its parse tree as JSON. Keys and
// values are the fields of PostgreSQL's nodes/parsenodes.h; zero values are left out.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/token.h"

namespace tidemark::rewrite {

/// What the grammar made of a text: a tree, or PostgreSQL's message and the byte it points at.
struct Parsed {
  std::shared_ptr<const nlohmann::json> tree;  // {"stmts": [{"stmt": {"SelectStmt": {…}}}]}
  std::string message;                         // empty when there is a tree
  size_t offset = 0;
};

/// Parses `text`, which must not hold more than IsTooDeep allows.
Parsed Parse(std::string_view text);

/// True when the tokens might nest so deeply that parser or tree walk would exhaust the stack:
/// libpg_query has no limit of its own. A bound from above, in one pass over the tokens.
bool IsTooDeep(const TokenList& tokens, StatementRange range);

/// The byte offset that a node stands at; `location` is left out when it is 0.
size_t LocationOf(const nlohmann::json& node);

/// The strings of a list of String nodes (a dotted name); any other node ends it.
std::vector<std::string> NamesOf(const nlohmann::json& list);

}  // namespace tidemark::rewrite
