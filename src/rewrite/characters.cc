#include "rewrite/characters.h"

namespace tidemark::rewrite {
namespace {

bool IsContinuation(unsigned char byte, unsigned char low = 0x80, unsigned char high = 0xBF) {
  return byte >= low && byte <= high;
}

/// Bytes of the valid UTF-8 character at `at`, 0 when there is none.
size_t ValidLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned char {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return IsContinuation(byte(1)) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : 0xBF;  // surrogates are not characters
    return IsContinuation(byte(1), low, high) && IsContinuation(byte(2)) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;
    return IsContinuation(byte(1), low, high) && IsContinuation(byte(2)) && IsContinuation(byte(3))
               ? 4
               : 0;
  }
  return 0;
}

size_t CharacterLength(std::string_view text, size_t at) {
  const size_t length = ValidLength(text, at);
  return length == 0 ? 1 : length;
}

}  // namespace

int CharacterPosition(std::string_view text, size_t offset) {
  int position = 1;
  for (size_t at = 0; at < text.size();) {
    at += CharacterLength(text, at);
    if (at > offset) break;
    ++position;
  }
  return position;
}

size_t ByteOffset(std::string_view text, int position) {
  size_t at = 0;
  for (int i = 1; i < position && at < text.size(); ++i) at += CharacterLength(text, at);
  return at;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = ValidLength(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string AsUtf8(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    const size_t length = ValidLength(text, at);
    if (length == 0) out[at] = 'x';
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace tidemark::rewrite
