// Whether a text may need the rewriter at all: every statement of every client passes here.
#include <cstring>
#include <string_view>

#include "rewrite/statement.h"

namespace tidemark::rewrite {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

bool StartsWith(std::string_view text, std::string_view lower_case) {
  if (text.size() < lower_case.size()) return false;
  for (size_t i = 0; i < lower_case.size(); ++i) {
    if (Lower(text[i]) != lower_case[i]) return false;
  }
  return true;
}

/// The next byte `c` at or after `from`; npos without one. memchr runs at memory speed.
size_t Find(std::string_view text, char c, size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* found = std::memchr(text.data() + from, c, text.size() - from);
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

/// system_time, source_time or source_position, told by their underscores.
bool HasClauseWord(std::string_view sql) {
  constexpr size_t kBefore = 6;  // "system", "source"
  for (size_t at = Find(sql, '_', 0); at != std::string_view::npos; at = Find(sql, '_', at + 1)) {
    if (at < kBefore) continue;
    const std::string_view before = sql.substr(at - kBefore), after = sql.substr(at + 1);
    if (StartsWith(before, "system") && StartsWith(after, "time")) return true;
    if (StartsWith(before, "source") &&
        (StartsWith(after, "time") || StartsWith(after, "position"))) {
      return true;
    }
  }
  return false;
}

/// `before`, the letter or sign `c` in either case, `after`, all in lower case, side by side.
bool HasAround(std::string_view sql, char c, std::string_view before, std::string_view after) {
  const char upper = c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
  for (const char spelling : {c, upper}) {
    for (size_t at = Find(sql, spelling, 0); at != std::string_view::npos;
         at = Find(sql, spelling, at + 1)) {
      if (at >= before.size() && StartsWith(sql.substr(at - before.size()), before) &&
          StartsWith(sql.substr(at + 1), after)) {
        return true;
      }
    }
    if (upper == c) break;
  }
  return false;
}

/// ONLY with something behind it that can be a table. In FETCH FIRST … ROWS ONLY, READ ONLY and
/// their like nothing of the kind follows.
bool HasOnly(std::string_view sql) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  for (size_t at = 0; at + 4 < sql.size(); ++at) {
    at = sql.find_first_of("yY", at);
    if (at == std::string_view::npos) return false;
    if (at < 3 || !StartsWith(sql.substr(at - 3), "only") || at + 1 >= sql.size()) continue;
    const size_t next = sql.find_first_not_of(kBlank, at + 1);
    if (next == std::string_view::npos) return false;
    if (sql[next] == ';' || sql[next] == ')' || sql[next] == ',') continue;
    if (next > at + 1 || sql[next] == '(' || sql[next] == '"' || sql[next] == '/' ||
        sql[next] == '-') {
      return true;
    }
  }
  return false;
}

bool HasWord(std::string_view sql, std::string_view lower_case) {
  for (size_t i = 0; i + lower_case.size() <= sql.size(); ++i) {
    if (StartsWith(sql.substr(i), lower_case)) return true;
  }
  return false;
}

/// Some statement starts with `lower_case`. Every semicolon counts as the end of a statement, even
/// one in a string; a comment at the start of a statement makes any such word count.
bool SomeStartsWith(std::string_view sql, std::string_view lower_case) {
  for (size_t at = 0; at != std::string_view::npos && at < sql.size();) {
    const size_t word = sql.find_first_not_of(" \t\r\n\f\v;", at);
    if (word == std::string_view::npos) return false;
    if (sql[word] == '-' || sql[word] == '/') return HasWord(sql, lower_case);
    if (StartsWith(sql.substr(word), lower_case)) return true;
    at = Find(sql, ';', word);
  }
  return false;
}

}  // namespace

bool MayConcern(std::string_view sql, const Scope& scope) {
  return scope.pins || HasClauseWord(sql) || SomeStartsWith(sql, "copy") || HasOnly(sql) ||
         (scope.executes && HasWord(sql, "execute"));
}

bool NamesTemporal(std::string_view sql) {
  return HasClauseWord(sql) || HasAround(sql, 'k', "tidemar", "");
}

// U&"\0074idemark" is a spelling of the name too.
bool MayPin(std::string_view sql) {
  return HasAround(sql, 'k', "tidemar", "") || HasAround(sql, '_', "set", "config") ||
         HasAround(sql, '_', "pg", "settings") || HasAround(sql, '&', "u", "") ||
         SomeStartsWith(sql, "do") || SomeStartsWith(sql, "call");
}

}  // namespace tidemark::rewrite
