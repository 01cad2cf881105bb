// The tokens of a SQL text as PostgreSQL's own scanner (libpg_query) cuts them, comments left out,
// and the statements the text consists of. Knows no grammar.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tidemark::rewrite {

enum class TokenKind {
  kName,           // an identifier, quoted or not
  kUnicodeName,    // U&"…"; a UESCAPE clause is tokens of its own
  kString,         // any string, bit-string or dollar-quoted literal
  kUnicodeString,  // U&'…'
  kNumber,
  kParameter,  // $1
  kOperator,   // one that is not a single punctuation character
  kKeyword,
  kPunctuation,
};

/// PostgreSQL's classes of keywords (manual, appendix C): where a keyword may serve as a name.
enum class KeywordClass { kNone, kUnreserved, kColumnName, kTypeOrFunctionName, kReserved };

struct Token {
  TokenKind kind;
  KeywordClass keyword;
  size_t begin, end;  // bytes
};

class TokenList {
 public:
  /// The scanner's own complaint, and where.
  struct LexicalError {
    std::string message;
    size_t offset;
  };
  /// The tokens up to the end, or up to the token that PostgreSQL cannot read. `sql` has no NUL.
  explicit TokenList(std::string_view sql);

  size_t size() const { return tokens_.size(); }
  const Token& operator[](size_t i) const { return tokens_[i]; }
  const std::optional<LexicalError>& lexical_error() const { return lexical_error_; }

  /// All of these accept an index past the end and then say no.
  bool IsKind(size_t i, TokenKind kind) const { return i < size() && tokens_[i].kind == kind; }
  /// Token `i` is the keyword or unquoted name `lower_case`, in any case.
  bool IsWord(size_t i, std::string_view lower_case) const;
  bool IsPunctuation(size_t i, char character) const;
  /// Token `i` may stand where a column or table alias may (PostgreSQL's ColId).
  bool IsColumnId(size_t i) const;
  /// The text as the client wrote it, empty past the end.
  std::string_view Text(size_t i) const;

  /// Index of the first token that starts at `offset` or after.
  size_t IndexAt(size_t offset) const;
  /// One past the bracket that closes the one at `open`; nullopt when none does before `end`.
  std::optional<size_t> PastBracket(size_t open, size_t end) const;
  /// One past the name at `i`, with its UESCAPE clause.
  size_t PastName(size_t i) const;

  /// 42601 in PostgreSQL's words: syntax error at or near token `i`, or at end of input.
  base::Error SyntaxError(size_t i) const;
  /// Throws 42601 in PostgreSQL's words: syntax error at or near token `i`, or at end of input.
  [[noreturn]] void ThrowSyntaxError(size_t i, std::string hint = {}) const;

 private:
  std::string_view sql_;
  std::vector<Token> tokens_;
  std::optional<LexicalError> lexical_error_;
};

/// Tokens [begin, end) of one statement, without its semicolon. Empty statements are left out.
struct StatementRange {
  size_t begin, end;
};
std::vector<StatementRange> SplitStatements(const TokenList& tokens);

}  // namespace tidemark::rewrite
