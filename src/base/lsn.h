// A PostgreSQL log sequence number: a byte offset in the source's write-ahead log. Ordered;
// written as the server writes it, e.g. 0/16B3748. Manual: "pg_lsn Type".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::base {

class Lsn {
 public:
  constexpr Lsn() = default;
  constexpr explicit Lsn(uint64_t value) : value_(value) {}
  /// Reads `X/Y` in hexadecimal. Throws 22023 when the text is no LSN.
  static Lsn Parse(std::string_view text);

  constexpr uint64_t value() const { return value_; }
  /// Zero is PostgreSQL's InvalidXLogRecPtr.
  constexpr bool valid() const { return value_ != 0; }
  std::string ToString() const;
  constexpr auto operator<=>(const Lsn&) const = default;

 private:
  uint64_t value_ = 0;
};

}  // namespace tidemark::base
