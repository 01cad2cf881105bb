// Which bytes of a text are UTF-8 as PostgreSQL takes it: up to four bytes a character, none longer
// than it need be, no surrogates, nothing beyond U+10FFFF. Manual: "Character Set Support".
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tidemark::wire {

/// Where the first byte stands that is not part of a character; npos when there is none.
size_t FindInvalidUtf8(std::string_view text, size_t from = 0);

/// Writes '?' for each byte that is not part of a character; the length stays. How many there were.
size_t ReplaceInvalidUtf8(std::span<char> text);

}  // namespace tidemark::wire
