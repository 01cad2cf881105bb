#include "rewrite/token.h"

#include <pg_query.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/error.h"
#include "rewrite/characters.h"

namespace tidemark::rewrite {
namespace {

// Token numbers of libpg_query's scan result (pg_query.proto, enum Token) that are told apart.
constexpr uint64_t kIdent = 258, kUIdent = 259, kFconst = 260, kSconst = 261, kUSconst = 262,
                   kBconst = 263, kXconst = 264, kIconst = 266, kParam = 267, kSqlComment = 275,
                   kCComment = 276;

TokenKind KindOf(uint64_t number) {
  if (number < 256) return TokenKind::kPunctuation;
  if (number > kCComment) return TokenKind::kKeyword;
  switch (number) {
    case kIdent:
      return TokenKind::kName;
    case kUIdent:
      return TokenKind::kUnicodeName;
    case kSconst:
    case kBconst:
    case kXconst:
      return TokenKind::kString;
    case kUSconst:
      return TokenKind::kUnicodeString;
    case kFconst:
    case kIconst:
      return TokenKind::kNumber;
    case kParam:
      return TokenKind::kParameter;
    default:
      return TokenKind::kOperator;
  }
}

/// Reads the protobuf wire format as far as a ScanResult needs it: varints and nested messages.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  bool AtEnd() const { return bytes_.empty(); }
  uint64_t ReadVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string_view ReadNested() {
    const size_t length = std::min<size_t>(ReadVarint(), bytes_.size());
    const std::string_view nested = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return nested;
  }

 private:
  std::string_view bytes_;
};

constexpr uint64_t kNestedWireType = 2;

/// One past the quoted text that starts at or after `at`, with the parts that continue it on
/// further lines. libpg_query gives no end for U&"…" and U&'…'.
size_t PastQuoted(std::string_view sql, size_t at, char quote) {
  size_t end = std::min(sql.find(quote, at), sql.size());
  while (end < sql.size()) {
    const size_t close = sql.find(quote, end + 1);
    if (close == std::string_view::npos) return sql.size();
    end = close + 1;
    size_t next = end;
    bool new_line = false;
    while (next < sql.size() && std::isspace(static_cast<unsigned char>(sql[next])) != 0) {
      new_line = new_line || sql[next] == '\n' || sql[next] == '\r';
      ++next;
    }
    const bool doubled = next == end;
    const bool continued = quote == '\'' && new_line;
    if (next >= sql.size() || sql[next] != quote || !(doubled || continued)) return end;
    end = next;
  }
  return end;
}

/// message ScanToken { int32 start = 1; int32 end = 2; Token token = 4; KeywordKind kind = 5; }
void AppendToken(std::string_view message, std::string_view sql, std::vector<Token>& tokens) {
  uint64_t start = 0, end = 0, number = 0, keyword = 0;
  for (WireReader reader(message); !reader.AtEnd();) {
    const uint64_t field = reader.ReadVarint() >> 3;
    const uint64_t value = reader.ReadVarint();
    if (field == 1) start = value;
    if (field == 2) end = value;
    if (field == 4) number = value;
    if (field == 5) keyword = value;
  }
  if (number == kSqlComment || number == kCComment) return;
  if (number == kUIdent) end = PastQuoted(sql, start, '"');
  if (number == kUSconst) end = PastQuoted(sql, start, '\'');
  tokens.push_back({KindOf(number), static_cast<KeywordClass>(keyword), start, end});
}

std::optional<TokenList::LexicalError> ScanInto(const std::string& sql,
                                                std::vector<Token>& tokens) {
  PgQueryScanResult result = pg_query_scan(sql.c_str());
  std::optional<TokenList::LexicalError> error;
  if (result.error) {
    error = {result.error->message, ByteOffset(sql, result.error->cursorpos)};
  } else {
    for (WireReader reader({result.pbuf.data, result.pbuf.len}); !reader.AtEnd();) {
      const uint64_t tag = reader.ReadVarint();
      if ((tag & 7) == kNestedWireType) {
        AppendToken(reader.ReadNested(), sql, tokens);
      } else {
        reader.ReadVarint();
      }
    }
  }
  pg_query_free_scan_result(result);
  return error;
}

bool EqualsLowerCase(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + ('a' - 'A')) : a) == b;
  });
}

}  // namespace

TokenList::TokenList(std::string_view sql) : sql_(sql) {
  const std::string readable = AsUtf8(sql);
  lexical_error_ = ScanInto(readable, tokens_);
  if (lexical_error_) ScanInto(readable.substr(0, lexical_error_->offset), tokens_);
}

std::string_view TokenList::Text(size_t i) const {
  return i < size() ? sql_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin)
                    : std::string_view();
}

bool TokenList::IsWord(size_t i, std::string_view lower_case) const {
  return (IsKind(i, TokenKind::kKeyword) || IsKind(i, TokenKind::kName)) &&
         EqualsLowerCase(Text(i), lower_case);
}

bool TokenList::IsPunctuation(size_t i, char character) const {
  return IsKind(i, TokenKind::kPunctuation) && sql_[tokens_[i].begin] == character;
}

bool TokenList::IsColumnId(size_t i) const {
  if (i >= size()) return false;
  const Token& token = tokens_[i];
  return token.kind == TokenKind::kName || token.kind == TokenKind::kUnicodeName ||
         token.keyword == KeywordClass::kUnreserved || token.keyword == KeywordClass::kColumnName;
}

size_t TokenList::IndexAt(size_t offset) const {
  const auto at = std::ranges::lower_bound(tokens_, offset, {}, &Token::begin);
  return static_cast<size_t>(at - tokens_.begin());
}

std::optional<size_t> TokenList::PastBracket(size_t open, size_t end) const {
  size_t depth = 0;
  for (size_t i = open; i < end; ++i) {
    if (IsPunctuation(i, '(') || IsPunctuation(i, '[')) ++depth;
    if ((IsPunctuation(i, ')') || IsPunctuation(i, ']')) && --depth == 0) return i + 1;
  }
  return std::nullopt;
}

size_t TokenList::PastName(size_t i) const {
  return IsKind(i, TokenKind::kUnicodeName) && IsWord(i + 1, "uescape") ? i + 3 : i + 1;
}

base::Error TokenList::SyntaxError(size_t i) const {
  const bool at_end = i >= size();
  base::Error error(base::kSyntaxError,
                    at_end ? "syntax error at end of input"
                           : "syntax error at or near \"" + std::string(Text(i)) + "\"");
  return std::move(error).Position(
      CharacterPosition(sql_, at_end ? sql_.size() : tokens_[i].begin));
}

void TokenList::ThrowSyntaxError(size_t i, std::string hint) const {
  base::Error error = SyntaxError(i);
  if (!hint.empty()) throw std::move(error).Hint(std::move(hint));
  throw error;
}

std::vector<StatementRange> SplitStatements(const TokenList& tokens) {
  std::vector<StatementRange> statements;
  size_t begin = 0, brackets = 0, bodies = 0;
  const auto close = [&](size_t end) {
    if (end > begin) statements.push_back({begin, end});
    begin = end + 1;
    brackets = bodies = 0;
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens.IsPunctuation(i, '(')) ++brackets;
    if (tokens.IsPunctuation(i, ')') && brackets > 0) --brackets;
    // A routine's body in SQL (BEGIN ATOMIC … END) holds semicolons of its own.
    if (tokens.IsWord(i, "atomic") && i > begin && tokens.IsWord(i - 1, "begin")) ++bodies;
    if (tokens.IsWord(i, "case") && bodies > 0) ++bodies;
    if (tokens.IsWord(i, "end") && bodies > 0) --bodies;
    if (tokens.IsPunctuation(i, ';') && brackets == 0 && bodies == 0) close(i);
  }
  close(tokens.size());
  return statements;
}

}  // namespace tidemark::rewrite
