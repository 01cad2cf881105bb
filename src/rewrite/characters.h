// Bytes and characters of a client's SQL text. PostgreSQL counts error positions in characters from
// 1, everything in this room in bytes from 0; the two meet here. A byte that is not part of valid
// UTF-8 (the client may speak another encoding) counts as one character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark::rewrite {

/// The position of the character that holds byte `offset`; text.size() gives one past the last.
int CharacterPosition(std::string_view text, size_t offset);

/// The byte where character `position` starts; text.size() for any position past the end.
size_t ByteOffset(std::string_view text, int position);

/// True when every byte belongs to valid UTF-8.
bool IsUtf8(std::string_view text);

/// `text` with each byte that is not valid UTF-8 replaced by an 'x', so that PostgreSQL's grammar
/// can read it as it would read a letter. Offsets and positions stay the same.
std::string AsUtf8(std::string_view text);

}  // namespace tidemark::rewrite
