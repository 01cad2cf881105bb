// One copy-both message.
#include "wire/replication.h"

#include <cstdint>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tidemark::wire::ReadReplicationMessage({reinterpret_cast<const char*>(data), size});
  } catch (const tidemark::base::Error&) {
  }
  return 0;
}
