#include "wire/utf8.h"

#include <cstdint>

namespace tidemark::wire {

namespace {

uint8_t At(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

bool Follows(std::string_view text, size_t at, uint8_t least = 0x80, uint8_t most = 0xBF) {
  return at < text.size() && At(text, at) >= least && At(text, at) <= most;
}

// The length of the character that begins at `at`; 0 when none does.
size_t CharacterAt(std::string_view text, size_t at) {
  const uint8_t first = At(text, at);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return Follows(text, at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t least = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t most = first == 0xED ? 0x9F : 0xBF;
    return Follows(text, at + 1, least, most) && Follows(text, at + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t least = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t most = first == 0xF4 ? 0x8F : 0xBF;
    const bool whole = Follows(text, at + 1, least, most) && Follows(text, at + 2) &&
                       Follows(text, at + 3);
    return whole ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text, size_t from) {
  while (from < text.size()) {
    const size_t length = CharacterAt(text, from);
    if (length == 0) return from;
    from += length;
  }
  return std::string_view::npos;
}

size_t ReplaceInvalidUtf8(std::span<char> text) {
  const std::string_view view(text.data(), text.size());
  size_t replaced = 0;
  for (size_t at = FindInvalidUtf8(view); at != std::string_view::npos;
       at = FindInvalidUtf8(view, at)) {
    text[at] = '?';
    ++replaced;
  }
  return replaced;
}

}  // namespace tidemark::wire
