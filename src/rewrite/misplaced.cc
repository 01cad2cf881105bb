// What is said of a clause that follows no table's name. Reads backwards from the clause, since the
// parse tree has no locations for sub-selects, joins and their aliases.
#include <optional>
#include <string>

#include "rewrite/binding.h"
#include "rewrite/complaint.h"

namespace tidemark::rewrite {
namespace {

/// A cursor that moves towards the start of the statement. `at` is one past what is looked at.
class BackwardWalk {
 public:
  BackwardWalk(const TokenList& tokens, size_t begin, size_t at)
      : tokens_(tokens), begin_(begin), at_(at) {}

  size_t at() const { return at_; }
  bool Before(std::string_view word) const { return at_ > begin_ && tokens_.IsWord(at_ - 1, word); }
  bool Before(char c) const { return at_ > begin_ && tokens_.IsPunctuation(at_ - 1, c); }
  bool BeforeName() const { return at_ > begin_ && tokens_.IsColumnId(at_ - 1); }
  void Back(size_t count = 1) { at_ -= count; }

  /// Moves before the bracket that ends here; false when none does.
  bool BackOverBracket() {
    size_t depth = 0;
    for (size_t i = at_; Before(')') && i > begin_; --i) {
      if (tokens_.IsPunctuation(i - 1, ')')) ++depth;
      if (tokens_.IsPunctuation(i - 1, '(') && --depth == 0) {
        at_ = i - 1;
        return true;
      }
    }
    return false;
  }

  /// Moves before an alias with or without columns, when what is before it can have one.
  void BackOverAlias() {
    BackwardWalk alias = *this;
    alias.BackOverBracket();
    if (!alias.BeforeName()) return;
    alias.Back();
    if (alias.Before("as")) {
      alias.Back();
    } else if (!alias.Before(')') && !alias.Before("ordinality")) {
      return;
    }
    at_ = alias.at_;
  }

 private:
  const TokenList& tokens_;
  const size_t begin_;
  size_t at_;
};

bool StartsQuery(const TokenList& tokens, size_t i) {
  while (tokens.IsPunctuation(i, '(')) ++i;
  return tokens.IsWord(i, "select") || tokens.IsWord(i, "with") || tokens.IsWord(i, "values") ||
         tokens.IsWord(i, "table");
}

}  // namespace

void RefuseMisplaced(std::string_view sql, const TokenList& tokens, StatementRange range,
                     const Clause& clause) {
  const std::string words(WordsOf(clause.axis));
  const auto refuse = [&](const std::string& what, size_t token) {
    throw Complaint(base::kFeatureNotSupported, words + " is not allowed on " + what, sql,
                    tokens[token].begin);
  };
  BackwardWalk walk(tokens, range.begin, clause.tokens.begin);
  walk.BackOverAlias();
  if (walk.Before("ordinality")) walk.Back(2);
  if (walk.BackOverBracket()) {
    const size_t bracket = walk.at();
    if (walk.Before("repeatable")) {
      walk.Back();
      walk.BackOverBracket();
    }
    if (walk.Before("from") && tokens.IsWord(walk.at() - 2, "rows")) {
      refuse("ROWS FROM", walk.at() - 2);
    }
    size_t name = walk.at();
    while (walk.BeforeName()) {
      walk.Back();
      name = walk.at();
      if (!walk.Before('.')) break;
      walk.Back();
    }
    if (walk.Before("tablesample")) {
      throw Complaint(base::kFeatureNotSupported, "TABLESAMPLE is not allowed with " + words, sql,
                      tokens[walk.at() - 1].begin);
    }
    if (name < bracket) {
      const size_t text = tokens[name].begin;
      refuse("function \"" + std::string(sql.substr(text, tokens[bracket - 1].end - text)) + '"',
             name);
    }
    if (walk.Before("from") || walk.Before("join") || walk.Before(',') || walk.Before('(') ||
        walk.Before("lateral") || walk.Before("using")) {
      refuse(StartsQuery(tokens, bracket + 1) ? "a sub-select" : "a join", bracket);
    }
  }
  tokens.ThrowSyntaxError(clause.tokens.begin,
                          "A temporal clause follows a table's name or its alias.");
}

}  // namespace tidemark::rewrite
