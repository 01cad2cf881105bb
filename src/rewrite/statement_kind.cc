#include "rewrite/statement_kind.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tidemark::rewrite {
namespace {

using Json = nlohmann::json;

bool IsSelectInto(const Json& select) {
  const Json* arm = &select;  // INTO stands in the first arm of a UNION
  while (arm->contains("larg")) arm = &arm->at("larg");
  return arm->contains("intoClause");
}

}  // namespace

StatementKind KindOf(const Json& tree) {
  if (tree.contains("PrepareStmt")) return StatementKind::kPrepare;
  if (const auto select = tree.find("SelectStmt"); select != tree.end()) {
    return IsSelectInto(*select) ? StatementKind::kUtility : StatementKind::kQuery;
  }
  for (const char* kind : {"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"}) {
    if (tree.contains(kind)) return StatementKind::kQuery;
  }
  return StatementKind::kUtility;
}

bool RunsAtOnce(const Json& tree) {
  if (const auto explain = tree.find("ExplainStmt"); explain != tree.end()) {
    return RunsAtOnce(explain->at("query"));
  }
  if (const auto create = tree.find("CreateTableAsStmt"); create != tree.end()) {
    return create->value("objtype", std::string()) == "OBJECT_TABLE";
  }
  for (const char* kind : {"SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt",
                           "DeclareCursorStmt", "CopyStmt"}) {
    if (tree.contains(kind)) return true;
  }
  return false;
}

std::optional<std::string> ExecutedBy(const TokenList& tokens, StatementRange range) {
  const auto named = [&](size_t execute) {
    return std::optional<std::string>(std::string(tokens.Text(execute + 1)));
  };
  if (tokens.IsWord(range.begin, "execute")) return named(range.begin);
  const bool explain = tokens.IsWord(range.begin, "explain");
  if (!explain && !tokens.IsWord(range.begin, "create")) return std::nullopt;
  for (size_t i = range.begin + 1; i < range.end; ++i) {
    if (tokens.IsWord(i, "execute") && (explain || tokens.IsWord(i - 1, "as"))) return named(i);
  }
  return std::nullopt;
}

// FETCH FIRST … ROWS ONLY, READ ONLY and their like end with the word, or a punctuation follows.
bool HoldsOnly(const TokenList& tokens, StatementRange range) {
  for (size_t i = range.begin + 1; i + 1 < range.end; ++i) {
    if (!tokens.IsWord(i, "only") || tokens.IsWord(i - 1, "row") || tokens.IsWord(i - 1, "rows") ||
        tokens.IsWord(i - 1, "read")) {
      continue;
    }
    if (tokens.IsColumnId(i + 1) || tokens.IsPunctuation(i + 1, '(')) return true;
  }
  return false;
}

}  // namespace tidemark::rewrite
