#include "rewrite/read_only.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewrite/complaint.h"
#include "rewrite/syntax_tree.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {
namespace {

using Json = nlohmann::json;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool IsReadOnlySetting(const std::string& name) {
  const std::string lower = Lower(name);
  return lower == "default_transaction_read_only" || lower == "transaction_read_only";
}

/// The text of an A_Const that is a string, empty for any other.
std::string StringOf(const Json& node) {
  const auto constant = node.find("A_Const");
  if (constant == node.end() || !constant->contains("sval")) return {};
  return constant->at("sval").value("sval", std::string());
}

/// True for the ways to write a true boolean: anything else leaves, or is an error.
bool IsTrue(const Json& node) {
  const auto constant = node.find("A_Const");
  if (constant == node.end()) return false;
  if (const auto number = constant->find("ival"); number != constant->end()) {
    return number->value("ival", 0) != 0;
  }
  if (const auto boolean = constant->find("boolval"); boolean != constant->end()) {
    return boolean->value("boolval", false);
  }
  const std::string text = Lower(StringOf(node));
  if (text.empty()) return false;
  return text == "on" || text == "1" || std::string_view("true").starts_with(text) ||
         std::string_view("yes").starts_with(text);
}

bool SetsOff(const Json& set) {
  if (!IsReadOnlySetting(set.value("name", std::string()))) return false;
  const auto values = set.find("args");
  return values != set.end() && !values->empty() && !IsTrue(values->front());
}

/// READ WRITE of BEGIN, SET TRANSACTION and SET SESSION CHARACTERISTICS.
bool IsReadWrite(const Json& element) {
  return element.value("defname", std::string()) == "transaction_read_only" &&
         element.contains("arg") && !IsTrue(element.at("arg"));
}

bool ConfiguresOff(const Json& call) {
  const auto names = NamesOf(call.at("funcname"));
  const auto arguments = call.find("args");
  return !names.empty() && names.back() == "set_config" && arguments != call.end() &&
         arguments->size() >= 2 && IsReadOnlySetting(StringOf(arguments->at(0))) &&
         !IsTrue(arguments->at(1));
}

bool Leaves(const Json& root) {
  std::vector<const Json*> pending = {&root};
  while (!pending.empty()) {
    const Json& node = *pending.back();
    pending.pop_back();
    for (auto child = node.begin(); child != node.end(); ++child) {
      if (!child->is_structured()) continue;
      if (node.is_object() && ((child.key() == "VariableSetStmt" && SetsOff(*child)) ||
                               (child.key() == "DefElem" && IsReadWrite(*child)) ||
                               (child.key() == "FuncCall" && ConfiguresOff(*child)))) {
        return true;
      }
      pending.push_back(&*child);
    }
  }
  return false;
}

bool HasWord(std::string_view sql, std::string_view lower_case) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  return !std::ranges::search(sql, lower_case, same).empty();
}

}  // namespace

std::optional<base::Error> LeavesReadOnly(std::string_view sql) {
  if (!HasWord(sql, "write") && !HasWord(sql, "read_only")) return std::nullopt;
  if (sql.find('\0') != std::string_view::npos) return std::nullopt;
  const TokenList tokens(sql);
  if (tokens.lexical_error()) return std::nullopt;
  for (const StatementRange range : SplitStatements(tokens)) {
    if (IsTooDeep(tokens, range)) continue;
    const size_t begin = tokens[range.begin].begin;
    const Parsed parsed = Parse(sql.substr(begin, tokens[range.end - 1].end - begin));
    if (!parsed.tree || !Leaves(*parsed.tree)) continue;
    return Complaint(base::kReadOnlyTransaction, "cannot leave read-only mode as a reader", sql,
                     begin)
        .Hint("Readers may only read; what is stored here comes from its sources.");
  }
  return std::nullopt;
}

}  // namespace tidemark::rewrite
