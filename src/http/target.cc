#include "http/target.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/error.h"

namespace tidemark::http {

namespace {

using base::Error;

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// How many bytes after this one belong to its character; nullopt when none begins with it.
std::optional<size_t> Continuation(uint8_t lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead <= 0xDF) return 1;
  if (lead >= 0xE0 && lead <= 0xEF) return 2;
  if (lead >= 0xF0 && lead <= 0xF4) return 3;
  return std::nullopt;
}

/// UTF-8 as PostgreSQL takes it: no overlong form, no surrogate, nothing beyond U+10FFFF.
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const auto more = Continuation(lead);
    if (!more || i + *more >= text.size()) return false;
    for (size_t j = 1; j <= *more; ++j) {
      const auto byte = static_cast<uint8_t>(text[i + j]);
      uint8_t least = 0x80, most = 0xBF;
      if (j == 1 && lead == 0xE0) least = 0xA0;
      if (j == 1 && lead == 0xED) most = 0x9F;
      if (j == 1 && lead == 0xF0) least = 0x90;
      if (j == 1 && lead == 0xF4) most = 0x8F;
      if (byte < least || byte > most) return false;
    }
    i += *more;
  }
  return true;
}

std::string QueryDecoded(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return PercentDecoded(spaced);
}

std::map<std::string, std::string> ParseQuery(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    query.emplace(QueryDecoded(pair.substr(0, equals)),
                  QueryDecoded(pair.substr(std::min(equals + 1, pair.size()))));
  }
  return query;
}

/// What follows the host of an absolute address; the text itself when it is a path.
std::string_view WithoutAuthority(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    const auto end = std::min(text.find_first_of("/?"), text.size());
    return text.substr(end);
  }
  return text;
}

}  // namespace

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const auto high = i + 1 < text.size() ? HexDigit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? HexDigit(text[i + 2]) : std::nullopt;
    if (!high || !low) throw Error(base::kInvalidParameter, "malformed percent-encoding");
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos) {
    throw Error(base::kInvalidParameter, "a target cannot hold the character NUL");
  }
  if (!IsUtf8(decoded)) {
    throw Error(base::kCharacterNotInRepertoire, "a target must be UTF-8");
  }
  return decoded;
}

Target Target::Parse(std::string_view text) {
  if (text == "*") return {.raw_path = "*", .path = "*", .query = {}};
  const auto local = WithoutAuthority(text);
  const bool is_path = local.starts_with('/') || (local.size() < text.size() && !text.empty());
  if (!is_path) throw Error(base::kInvalidParameter, "malformed request target");
  const auto question = std::min(local.find('?'), local.size());
  Target target;
  target.raw_path = local.substr(0, question);
  if (target.raw_path.empty()) target.raw_path = "/";
  target.path = PercentDecoded(target.raw_path);
  target.query = ParseQuery(local.substr(std::min(question + 1, local.size())));
  return target;
}

}  // namespace tidemark::http
