#include "base/lsn.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace tidemark::base {

Lsn Lsn::Parse(std::string_view text) {
  const auto slash = text.find('/');
  uint32_t halves[2] = {0, 0};
  bool ok = slash != std::string_view::npos;
  for (int i = 0; ok && i < 2; ++i) {
    const auto part = i == 0 ? text.substr(0, slash) : text.substr(slash + 1);
    const auto [end, code] =
        std::from_chars(part.data(), part.data() + part.size(), halves[i], 16);
    ok = !part.empty() && part.size() <= 8 && code == std::errc() &&
         end == part.data() + part.size();
  }
  if (!ok) {
    throw Error(kInvalidParameter, fmt::format("invalid log sequence number \"{}\"", text))
        .Hint("Write it as the server does, for example 0/16B3748.");
  }
  return Lsn((static_cast<uint64_t>(halves[0]) << 32) | halves[1]);
}

std::string Lsn::ToString() const {
  return fmt::format("{:X}/{:X}", value_ >> 32, value_ & 0xFFFFFFFFu);
}

}  // namespace tidemark::base
