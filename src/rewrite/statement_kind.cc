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

bool IsExecute(const TokenList& tokens, StatementRange range) {
  if (tokens.IsWord(range.begin, "execute")) return true;
  const bool explain = tokens.IsWord(range.begin, "explain");
  if (!explain && !tokens.IsWord(range.begin, "create")) return false;
  for (size_t i = range.begin + 1; i < range.end; ++i) {
    if (tokens.IsWord(i, "execute") && (explain || tokens.IsWord(i - 1, "as"))) return true;
  }
  return false;
}

}  // namespace tidemark::rewrite
