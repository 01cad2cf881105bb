#include "rewrite/expression.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tidemark::rewrite {
namespace {

template <size_t N>
bool IsOneOf(const TokenList& tokens, size_t i, const std::array<std::string_view, N>& words) {
  return tokens.IsKind(i, TokenKind::kKeyword) &&
         std::ranges::any_of(words, [&](auto word) { return tokens.IsWord(i, word); });
}

/// Walks over one expression. Every member starts at `at_` and leaves it past what it read.
class ExpressionWalk {
 public:
  ExpressionWalk(const TokenList& tokens, size_t begin, size_t end)
      : tokens_(tokens), at_(begin), end_(end) {}

  ExpressionExtent Measure() {
    do {
      while (IsPrefixOperator()) Step();
      Operand();
      Suffixes();
    } while (InfixOperator());
    return {at_, primary_};
  }

 private:
  bool Word(std::string_view word) const { return at_ < end_ && tokens_.IsWord(at_, word); }
  bool Mark(char c) const { return at_ < end_ && tokens_.IsPunctuation(at_, c); }
  bool Kind(TokenKind kind) const { return at_ < end_ && tokens_.IsKind(at_, kind); }
  bool String() const { return Kind(TokenKind::kString) || Kind(TokenKind::kUnicodeString); }
  bool WordAfter(size_t ahead, std::string_view word) const {
    return at_ + ahead < end_ && tokens_.IsWord(at_ + ahead, word);
  }
  void Step() {
    primary_ = false;
    ++at_;
  }
  [[noreturn]] void Fail(size_t at) const { tokens_.ThrowSyntaxError(at); }

  bool IsPrefixOperator() const { return Mark('+') || Mark('-') || Kind(TokenKind::kOperator); }

  /// Reads an operator between operands; false when there is none.
  bool InfixOperator() {
    if (Word("at") && WordAfter(1, "time") && WordAfter(2, "zone")) {
      at_ += 3;
      primary_ = false;
      return true;
    }
    if (Word("operator") && at_ + 1 < end_ && tokens_.IsPunctuation(at_ + 1, '(')) {
      primary_ = false;
      ++at_;
      Bracket();
      return true;
    }
    static constexpr std::string_view kOperators = "+-*/%^<>=";
    const bool single = Kind(TokenKind::kPunctuation) &&
                        kOperators.find(tokens_.Text(at_)[0]) != std::string_view::npos;
    if (!single && !Kind(TokenKind::kOperator)) return false;
    Step();
    return true;
  }

  void Bracket() {
    const auto past = tokens_.PastBracket(at_, end_);
    if (!past) Fail(end_);
    at_ = *past;
  }
  void OptionalBracket() {
    if (Mark('(')) Bracket();
  }

  void StringLiteral() {
    const bool unicode = Kind(TokenKind::kUnicodeString);
    ++at_;
    if (unicode && Word("uescape")) at_ += 2;
  }

  void Operand() {
    if (String()) return StringLiteral();
    if (Kind(TokenKind::kNumber) || Kind(TokenKind::kParameter)) return void(++at_);
    if (Mark('(')) return Bracket();
    if (Word("case")) return CaseExpression();
    if (Word("cast") && at_ + 1 < end_ && tokens_.IsPunctuation(at_ + 1, '(')) {
      ++at_;
      return Bracket();
    }
    if (Word("array") && at_ + 1 < end_ &&
        (tokens_.IsPunctuation(at_ + 1, '[') || tokens_.IsPunctuation(at_ + 1, '('))) {
      ++at_;
      return Bracket();
    }
    static constexpr std::array<std::string_view, 14> kValues = {
        "null",           "true",           "false",
        "current_date",   "current_time",   "current_timestamp",
        "localtime",      "localtimestamp", "current_user",
        "current_role",   "session_user",   "user",
        "current_schema", "current_catalog"};
    if (at_ < end_ && IsOneOf(tokens_, at_, kValues)) {
      ++at_;
      return OptionalBracket();
    }
    if (TypedLiteral()) return;
    NameOrCall();
  }

  void CaseExpression() {
    size_t depth = 0;
    for (; at_ < end_; ++at_) {
      if (Word("case")) ++depth;
      if (Word("end") && --depth == 0) return void(++at_);
    }
    Fail(end_);
  }

  /// type 'text', and interval 'text' [fields].
  bool TypedLiteral() {
    const size_t begin = at_;
    const bool interval = Word("interval");
    if (!Type(/*literal=*/true) || !String()) {
      at_ = begin;
      return false;
    }
    StringLiteral();
    if (interval) IntervalFields();
    return true;
  }

  void NameOrCall() {
    const bool name = at_ < end_ && (tokens_.IsColumnId(at_) ||
                                     tokens_[at_].keyword == KeywordClass::kTypeOrFunctionName);
    if (!name) Fail(std::min(at_, end_));
    DottedName();
    if (!Mark('(')) return;
    Bracket();
    if (String()) return StringLiteral();  // type(modifier) 'text'
    if (Word("within") && WordAfter(1, "group")) {
      at_ += 2;
      OptionalBracket();
    }
    if (Word("filter") && at_ + 1 < end_ && tokens_.IsPunctuation(at_ + 1, '(')) {
      ++at_;
      Bracket();
    }
    if (Word("over")) {
      ++at_;
      if (Mark('(')) {
        Bracket();
      } else if (tokens_.IsColumnId(at_)) {
        at_ = tokens_.PastName(at_);
      }
    }
  }

  void DottedName() {
    at_ = std::min(tokens_.PastName(at_), end_);
    while (Mark('.') && at_ + 1 < end_) at_ = std::min(tokens_.PastName(at_ + 1), end_);
  }

  void Suffixes() {
    while (true) {
      if (Kind(TokenKind::kOperator) && tokens_.Text(at_) == "::") {
        ++at_;
        if (!Type(/*literal=*/false)) Fail(std::min(at_, end_));
      } else if (Mark('[')) {
        Bracket();
      } else if (Mark('.')) {
        at_ = std::min(at_ + 2, end_);
      } else if (Word("collate")) {
        ++at_;
        if (at_ >= end_) Fail(end_);
        DottedName();
      } else if (Word("at") && WordAfter(1, "local")) {
        at_ += 2;
        primary_ = false;
      } else {
        return;
      }
    }
  }

  /// A type's name. Before a literal it has no array brackets and no trailing interval fields.
  bool Type(bool literal) {
    if (at_ >= end_) return false;
    if (Word("timestamp") || Word("time")) {
      ++at_;
      OptionalBracket();
      if ((Word("with") || Word("without")) && WordAfter(1, "time") && WordAfter(2, "zone")) {
        at_ += 3;
      }
    } else if (Word("interval")) {
      ++at_;
      if (!literal) IntervalFields();
      OptionalBracket();
    } else if (Word("double") && WordAfter(1, "precision")) {
      at_ += 2;
    } else if (tokens_.IsColumnId(at_) ||
               tokens_[at_].keyword == KeywordClass::kTypeOrFunctionName) {
      if (Word("national")) ++at_;
      DottedName();
      if (Word("varying")) ++at_;
      OptionalBracket();
    } else {
      return false;
    }
    while (!literal && (Mark('[') || Word("array"))) {
      if (Mark('[')) {
        Bracket();
      } else {
        ++at_;
      }
    }
    return true;
  }

  /// YEAR, DAY TO SECOND(3) …; a TO that does not continue the fields is left alone.
  void IntervalFields() {
    static constexpr std::array<std::string_view, 6> kFields = {"year", "month",  "day",
                                                                "hour", "minute", "second"};
    if (at_ >= end_ || !IsOneOf(tokens_, at_, kFields)) return;
    const bool year = Word("year"), month = Word("month"), second = Word("second");
    ++at_;
    if (second) return OptionalBracket();
    if (month || !Word("to") || at_ + 1 >= end_) return;
    static constexpr std::array<std::string_view, 1> kAfterYear = {"month"};
    static constexpr std::array<std::string_view, 3> kAfterDay = {"hour", "minute", "second"};
    if (!(year ? IsOneOf(tokens_, at_ + 1, kAfterYear) : IsOneOf(tokens_, at_ + 1, kAfterDay))) {
      return;
    }
    const bool to_second = WordAfter(1, "second");
    at_ += 2;
    if (to_second) OptionalBracket();
  }

  const TokenList& tokens_;
  size_t at_;
  const size_t end_;
  bool primary_ = true;
};

}  // namespace

ExpressionExtent MeasureExpression(const TokenList& tokens, size_t begin, size_t end) {
  return ExpressionWalk(tokens, begin, end).Measure();
}

}  // namespace tidemark::rewrite
