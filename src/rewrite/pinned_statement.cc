#include "rewrite/pinned_statement.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

namespace tidemark::rewrite {
namespace {

using Json = nlohmann::json;

// Statements that neither write nor read tables.
constexpr std::array kHarmless = {
    "VariableSetStmt", "VariableShowStmt", "TransactionStmt", "ClosePortalStmt",
    "FetchStmt",       "DeallocateStmt",   "DiscardStmt",     "ListenStmt",
    "UnlistenStmt",    "NotifyStmt",       "LockStmt",        "ConstraintsSetStmt",
    "LoadStmt",        "CheckPointStmt",
    "ExecuteStmt",  // what it runs is looked at when it runs
};

/// The first words in upper case: two where the first says little.
std::string CommandOf(const TokenList& tokens, StatementRange range) {
  const auto upper = [&](size_t token) {
    std::string word(tokens.Text(token));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
    return word;
  };
  std::string command = upper(range.begin);
  if (range.end > range.begin + 1 && (command == "CREATE" || command == "ALTER" ||
                                      command == "DROP" || command == "REFRESH")) {
    command += ' ' + upper(range.begin + 1);
  }
  return command;
}

/// INSERT, UPDATE, DELETE, MERGE or SELECT FOR UPDATE anywhere below `root`; empty without.
std::string WriteWithin(const Json& root) {
  std::vector<const Json*> pending = {&root};
  while (!pending.empty()) {
    const Json& node = *pending.back();
    pending.pop_back();
    for (auto child = node.begin(); child != node.end(); ++child) {
      if (!child->is_structured()) continue;
      if (node.is_object()) {
        const std::string& key = child.key();
        if (key == "InsertStmt") return "INSERT";
        if (key == "UpdateStmt") return "UPDATE";
        if (key == "DeleteStmt") return "DELETE";
        if (key == "MergeStmt") return "MERGE";
        if (key == "lockingClause") return "SELECT FOR UPDATE";
      }
      pending.push_back(&*child);
    }
  }
  return {};
}

/// CREATE TEMP TABLE … AS and SELECT … INTO TEMP keep what was read for the session alone.
bool IsTemporary(const Json& into) {
  const auto relation = into.find("rel");
  return relation != into.end() && relation->value("relpersistence", std::string()) == "t";
}

std::string SelectInto(const Json& select) {
  const Json* arm = &select;  // INTO stands in the first arm of a UNION
  while (arm->contains("larg")) arm = &arm->at("larg");
  const auto into = arm->find("intoClause");
  return into == arm->end() || IsTemporary(*into) ? "" : "SELECT INTO";
}

}  // namespace

PinnedStatement ReadPinnedStatement(const Json& tree, const TokenList& tokens,
                                    StatementRange range) {
  const auto names = [&](const char* kind) { return tree.contains(kind); };
  if (std::ranges::any_of(kHarmless, names)) return {};
  if (names("DoStmt") || names("CallStmt")) {
    return {.write = {}, .unpinnable = CommandOf(tokens, range) + " cannot be pinned to the past"};
  }
  if (const auto explain = tree.find("ExplainStmt"); explain != tree.end()) {
    return ReadPinnedStatement(explain->at("query"), tokens, range);
  }
  if (const auto prepare = tree.find("PrepareStmt"); prepare != tree.end()) {
    return ReadPinnedStatement(prepare->at("query"), tokens, range);
  }
  if (const auto select = tree.find("SelectStmt"); select != tree.end()) {
    std::string write = SelectInto(*select);
    return {.write = write.empty() ? WriteWithin(tree) : write, .unpinnable = {}};
  }
  if (names("DeclareCursorStmt")) return {.write = WriteWithin(tree), .unpinnable = {}};
  if (const auto copy = tree.find("CopyStmt"); copy != tree.end() && !copy->value("is_from", false)) {
    return {.write = WriteWithin(tree), .unpinnable = {}};
  }
  if (const auto create = tree.find("CreateTableAsStmt");
      create != tree.end() && IsTemporary(create->at("into"))) {
    return {.write = WriteWithin(tree), .unpinnable = {}};
  }
  std::string write = WriteWithin(tree);
  return {.write = write.empty() ? CommandOf(tokens, range) : write, .unpinnable = {}};
}

bool BeginsTransaction(const TokenList& tokens, StatementRange range) {
  return tokens.IsWord(range.begin, "begin") ||
         (tokens.IsWord(range.begin, "start") && tokens.IsWord(range.begin + 1, "transaction"));
}

}  // namespace tidemark::rewrite
