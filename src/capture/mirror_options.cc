#include "capture/mirror_options.h"

#include <algorithm>
#include <thread>

namespace tidemark::capture {

std::string SlotNameFor(const std::string& mirror) {
  std::string name = "tidemark_";
  for (const char c : mirror) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    name += plain ? lower : '_';
  }
  if (name.size() > 63) name.resize(63);
  return name;
}

MirrorOptions Completed(MirrorOptions options) {
  if (options.slot.empty()) options.slot = SlotNameFor(options.name);
  if (options.copy_workers <= 0) {
    options.copy_workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
  }
  return options;
}

}  // namespace tidemark::capture
