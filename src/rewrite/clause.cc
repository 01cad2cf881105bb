#include "rewrite/clause.h"

#include <optional>

#include "rewrite/expression.h"

namespace tidemark::rewrite {
namespace {

/// Calls `visit` with each FOR that may start a clause; it returns the token to go on from. The FOR
/// of substring(x FOR n) and overlay(…) belongs to the call.
template <typename Visit>
void VisitFors(const TokenList& tokens, StatementRange range, Visit visit) {
  std::vector<bool> brackets;  // true: the arguments of substring or overlay
  for (size_t i = range.begin; i < range.end;) {
    if (tokens.IsPunctuation(i, '(')) {
      const bool call = i > range.begin && tokens.IsKind(i - 1, TokenKind::kKeyword) &&
                        (tokens.IsWord(i - 1, "substring") || tokens.IsWord(i - 1, "overlay"));
      brackets.push_back(call);
    } else if (tokens.IsPunctuation(i, ')') && !brackets.empty()) {
      brackets.pop_back();
    } else if (tokens.IsWord(i, "for") && tokens.IsKind(i, TokenKind::kKeyword) &&
               (brackets.empty() || !brackets.back())) {
      i = visit(i);
      continue;
    }
    ++i;
  }
}

std::optional<Axis> AxisAt(const TokenList& tokens, size_t i) {
  if (!tokens.IsKind(i, TokenKind::kName)) return std::nullopt;
  if (tokens.IsWord(i, "system_time")) return Axis::kSystemTime;
  if (tokens.IsWord(i, "source_time")) return Axis::kSourceTime;
  if (tokens.IsWord(i, "source_position")) return Axis::kSourcePosition;
  return std::nullopt;
}

bool IsForAllSystemTime(const TokenList& tokens, size_t i) {
  return tokens.IsWord(i + 1, "all") && AxisAt(tokens, i + 2) == Axis::kSystemTime;
}

/// Reads the clause whose FOR is token `begin`.
class ClauseReader {
 public:
  ClauseReader(const TokenList& tokens, size_t begin, size_t end)
      : tokens_(tokens), at_(begin + 1), end_(end) {
    clause_.tokens.begin = begin;
  }

  Clause Read() {
    if (IsForAllSystemTime(tokens_, at_ - 1)) {
      at_ += 2;
    } else {
      clause_.axis = *AxisAt(tokens_, at_++);
      ReadRange();
    }
    clause_.tokens.end = at_;
    RefuseBareAliasAfterOperator();
    return clause_;
  }

 private:
  bool Accept(std::string_view word) {
    if (at_ >= end_ || !tokens_.IsWord(at_, word)) return false;
    ++at_;
    return true;
  }
  void Expect(std::string_view word) {
    if (!Accept(word)) tokens_.ThrowSyntaxError(at_);
  }
  void Expect(char c) {
    if (at_ >= end_ || !tokens_.IsPunctuation(at_, c)) tokens_.ThrowSyntaxError(at_);
    ++at_;
  }

  void ReadRange() {
    const bool ranges = clause_.axis != Axis::kSourcePosition;
    if (Accept("as")) {
      clause_.form = Form::kAsOf;
      Expect("of");
      ReadInstant();
    } else if (ranges && Accept("from")) {
      clause_.form = Form::kFromTo;
      ReadInstant();
      Expect("to");
      ReadInstant();
    } else if (ranges && Accept("between")) {
      clause_.form = Accept("symmetric") ? Form::kSymmetric : Form::kBetween;
      if (clause_.form == Form::kBetween) Accept("asymmetric");
      ReadInstant();
      Expect("and");
      ReadInstant();
    } else if (ranges && Accept("contained")) {
      clause_.form = Form::kContained;
      Expect("in");
      Expect('(');
      ReadInstant();
      Expect(',');
      ReadInstant();
      Expect(')');
      primary_ = true;
    } else if (!(ranges && Accept("all"))) {
      tokens_.ThrowSyntaxError(
          at_, ranges ? "Write AS OF, FROM … TO, BETWEEN … AND, CONTAINED IN or ALL."
                      : "FOR SOURCE_POSITION is followed by AS OF and a position.");
    }
  }

  void ReadInstant() {
    const ExpressionExtent extent = MeasureExpression(tokens_, at_, end_);
    clause_.instants.push_back({at_, extent.end});
    at_ = extent.end;
    primary_ = extent.primary;
  }

  void RefuseBareAliasAfterOperator() const {
    // UPDATE's SET is no alias: the clause stands on a target, which is refused as such.
    const bool alias = at_ < end_ && tokens_.IsColumnId(at_) && !tokens_.IsWord(at_, "set");
    if (alias && !primary_) {
      tokens_.ThrowSyntaxError(at_,
                               "After an instant with an operator, write AS before the alias.");
    }
  }

  const TokenList& tokens_;
  size_t at_;
  const size_t end_;
  bool primary_ = true;
  Clause clause_;
};

bool StartsClause(const TokenList& tokens, size_t i) {
  return AxisAt(tokens, i + 1).has_value() || IsForAllSystemTime(tokens, i);
}

}  // namespace

std::string_view WordsOf(Axis axis) {
  switch (axis) {
    case Axis::kSystemTime:
      return "FOR SYSTEM_TIME";
    case Axis::kSourceTime:
      return "FOR SOURCE_TIME";
    case Axis::kSourcePosition:
      return "FOR SOURCE_POSITION";
  }
  return {};
}

bool MayHoldClause(const TokenList& tokens, StatementRange range) {
  bool found = false;
  VisitFors(tokens, range, [&](size_t i) {
    found = found || StartsClause(tokens, i);
    return i + 1;
  });
  return found;
}

bool BeginsClause(const TokenList& tokens, StatementRange range) {
  bool found = false;
  VisitFors(tokens, range, [&](size_t i) {
    const size_t form = i + 2;
    const bool known = tokens.IsWord(form, "as") || tokens.IsWord(form, "from") ||
                       tokens.IsWord(form, "between") || tokens.IsWord(form, "contained") ||
                       tokens.IsWord(form, "all");
    found = found || IsForAllSystemTime(tokens, i) || (AxisAt(tokens, i + 1) && known);
    return i + 1;
  });
  return found;
}

std::vector<Clause> FindClauses(const TokenList& tokens, StatementRange range) {
  std::vector<Clause> clauses;
  VisitFors(tokens, range, [&](size_t i) {
    if (!StartsClause(tokens, i)) return i + 1;
    clauses.push_back(ClauseReader(tokens, i, range.end).Read());
    return clauses.back().tokens.end;
  });
  return clauses;
}

}  // namespace tidemark::rewrite
