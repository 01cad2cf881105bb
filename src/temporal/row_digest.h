// 128-bit digests by which two rows are known to be the same without comparing them, for one
// capture and within one process. The secret behind them is drawn anew each time and never leaves
// it, so that nobody can make two rows that agree; by chance two different ones do once in 2^128.
// Not the row hashes of docs/formats/version.md, which anybody can recompute. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark::temporal {

struct RowDigest {
  uint64_t high = 0, low = 0;
  bool operator==(const RowDigest&) const = default;
};

class RowDigester {
 public:
  /// Draws a secret from the system.
  RowDigester();

  /// `fields` are a row's as COPY BINARY carries them: int32 length (-1: NULL), bytes, …
  RowDigest Of(std::string_view fields) const;

 private:
  std::array<std::byte, 192> secret_;
};

}  // namespace tidemark::temporal
