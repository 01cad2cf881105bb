#include "rewrite/syntax_tree.h"

#include <pg_query.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "rewrite/characters.h"

namespace tidemark::rewrite {
namespace {

// Left-recursive grammar makes one level of tree out of as little as one token. Levels that make
// the tree walk recurse weigh more.
constexpr size_t kDepthMax = 3000;
constexpr size_t kBracketDepth = 1;
constexpr size_t kLinkDepth = 2;
constexpr size_t kSubqueryDepth = 8;

/// What makes a tree deeper at one level of brackets: tokens since the last separator that starts
/// a list element anew, and constructs whose nesting survives such a separator.
struct Depth {
  size_t enclosing = 0;
  size_t run = 0;
  size_t links = 0;
  size_t Total() const { return enclosing + run + links; }
};

bool IsLink(const TokenList& tokens, size_t i) {
  static constexpr std::array<std::string_view, 5> kLinks = {"union", "intersect", "except", "join",
                                                             "case"};
  return tokens.IsKind(i, TokenKind::kKeyword) &&
         std::ranges::any_of(kLinks, [&](auto word) { return tokens.IsWord(i, word); });
}

/// What starts an element of a flat list.
bool IsSeparator(const TokenList& tokens, size_t i) {
  static constexpr std::array<std::string_view, 4> kSeparators = {"and", "or", "when", "then"};
  return tokens.IsPunctuation(i, ',') ||
         std::ranges::any_of(kSeparators, [&](auto word) { return tokens.IsWord(i, word); });
}

}  // namespace

Parsed Parse(std::string_view text) {
  const std::string readable = AsUtf8(text);
  PgQueryParseResult result = pg_query_parse(readable.c_str());
  Parsed parsed;
  if (result.error) {
    parsed.message = result.error->message;
    parsed.offset = ByteOffset(readable, result.error->cursorpos);
  } else {
    auto tree = nlohmann::json::parse(result.parse_tree, nullptr, /*allow_exceptions=*/false);
    if (tree.is_discarded()) {
      parsed.message = "statement cannot be read";
    } else {
      parsed.tree = std::make_shared<const nlohmann::json>(std::move(tree));
    }
  }
  pg_query_free_parse_result(result);
  return parsed;
}

bool IsTooDeep(const TokenList& tokens, StatementRange range) {
  std::vector<Depth> levels(1);
  for (size_t i = range.begin; i < range.end; ++i) {
    Depth& level = levels.back();
    if (tokens.IsPunctuation(i, '(') || tokens.IsPunctuation(i, '[')) {
      const size_t own = tokens.IsWord(i + 1, "select") ? kSubqueryDepth : kBracketDepth;
      levels.push_back({.enclosing = level.Total() + own});
    } else if ((tokens.IsPunctuation(i, ')') || tokens.IsPunctuation(i, ']')) &&
               levels.size() > 1) {
      levels.pop_back();
    } else if (IsSeparator(tokens, i)) {
      level.run = 0;
    } else if (IsLink(tokens, i)) {
      level.links += kLinkDepth;
    } else {
      ++level.run;
    }
    if (levels.back().Total() > kDepthMax) return true;
  }
  return false;
}

size_t LocationOf(const nlohmann::json& node) {
  const auto location = node.find("location");
  if (location == node.end() || !location->is_number_integer()) return 0;
  const auto offset = location->get<long>();
  return offset < 0 ? 0 : static_cast<size_t>(offset);
}

std::vector<std::string> NamesOf(const nlohmann::json& list) {
  std::vector<std::string> names;
  for (const auto& item : list) {
    const auto string = item.find("String");
    if (string == item.end()) break;
    names.push_back(string->value("sval", std::string()));
  }
  return names;
}

}  // namespace tidemark::rewrite
