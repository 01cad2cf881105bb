#include "temporal/row_digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <random>

namespace tidemark::temporal {

RowDigester::RowDigester() {
  static_assert(sizeof secret_ >= XXH3_SECRET_SIZE_MIN);
  std::random_device system;
  for (size_t at = 0; at < secret_.size(); at += sizeof(uint32_t)) {
    const uint32_t drawn = system();
    std::memcpy(secret_.data() + at, &drawn, sizeof drawn);
  }
}

RowDigest RowDigester::Of(std::string_view fields) const {
  const auto digest =
      XXH3_128bits_withSecret(fields.data(), fields.size(), secret_.data(), secret_.size());
  return {digest.high64, digest.low64};
}

}  // namespace tidemark::temporal
