#include "capture/mirror_options.h"

#include <algorithm>
#include <thread>

#include "source/postgres/source_session.h"

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

temporal::TypeOptions TypeOptionsOf(const pg::Connection& source, const pg::Connection& store,
                                    const MirrorOptions& options) {
  constexpr int kFirstVersionWithInfiniteIntervals = 170000;
  temporal::TypeOptions types{
      .finite_intervals = source.server_version() >= kFirstVersionWithInfiniteIntervals &&
                          store.server_version() < kFirstVersionWithInfiniteIntervals,
      .as_text = options.unknown_as_text};
  if (source::SendsRawText(source)) {
    types.raw_text =
        options.replace_undecodable ? temporal::RawText::kReplace : temporal::RawText::kRefuse;
  }
  return types;
}

MirrorOptions Completed(MirrorOptions options) {
  if (options.slot.empty()) options.slot = SlotNameFor(options.name);
  if (options.copy_workers <= 0) {
    options.copy_workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
  }
  return options;
}

}  // namespace tidemark::capture
