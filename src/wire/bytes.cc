#include "wire/bytes.h"

#include <fmt/format.h>

namespace tidemark::wire {

void ByteReader::ThrowShort(size_t count) const {
  throw base::Error(
      on_short_, fmt::format("message is too short: {} bytes needed at offset {}, {} left", count,
                             offset(), remaining()));
}

void ByteReader::ThrowUnterminated() const {
  throw base::Error(on_short_,
                    fmt::format("message is too short: text at offset {} has no end", offset()));
}

void ByteReader::ThrowTrailing() const {
  throw base::Error(on_short_, fmt::format("message is too long: {} bytes left at offset {}",
                                           remaining(), offset()));
}

void ByteWriter::WriteString(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw base::Error(base::kInvalidParameter, "cannot send text that holds a NUL byte");
  }
  out_->append(text);
  out_->push_back('\0');
}

}  // namespace tidemark::wire
