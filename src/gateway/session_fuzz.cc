// A session between two peers that send anything: nothing crashes, and nothing that the client sent
// before a statement was held is lost. Each input is a list of (side and length, bytes).
#include <cstdint>
#include <string_view>

#include "gateway/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  using tidemark::gateway::Session;
  std::string_view input(reinterpret_cast<const char*>(bytes), count);
  Session session({.text_bytes_max = 4096});
  while (!input.empty()) {
    const auto head = static_cast<uint8_t>(input[0]);
    input.remove_prefix(1);
    const std::string_view piece = input.substr(0, head >> 1);
    input.remove_prefix(piece.size());
    if (head & 1) {
      session.OnFrontendBytes(piece);
    } else {
      session.OnBackendBytes(piece);
    }
  }
  session.OnStop(tidemark::base::Error(tidemark::base::kAdminShutdown, "stop"));
  return 0;
}
