// Bytes written as hexadecimal digits in a test: "0a ff"_hex. Blanks are for the reader. Not for
// input: a wrong digit ends the test program.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace tidemark::wire {

inline std::string FromHex(std::string_view digits) {
  std::string bytes;
  int high = -1;
  for (const char c : digits) {
    if (c == ' ' || c == '\n') continue;
    const size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) std::abort();
    if (high < 0) {
      high = static_cast<int>(digit);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + static_cast<int>(digit)));
      high = -1;
    }
  }
  if (high >= 0) std::abort();
  return bytes;
}

inline std::string operator""_hex(const char* digits, size_t count) {
  return FromHex({digits, count});
}

}  // namespace tidemark::wire
