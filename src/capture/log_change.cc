#include "capture/log_change.h"

#include <fmt/format.h>

namespace tidemark::capture {

std::optional<LogChange> CompareLogs(const source::LogPlace& now, const Journal& journal,
                                     const temporal::Resume& resume) {
  if (now.system_identifier != journal.system_identifier) {
    return LogChange{fmt::format("the source is another server than the one that was mirrored: "
                                 "system identifier {} instead of {}",
                                 now.system_identifier, journal.system_identifier),
                     std::nullopt};
  }
  if (now.timeline < journal.timeline) {
    return LogChange{fmt::format("the source is on timeline {}, but the mirror has followed timeline {}",
                                 now.timeline, journal.timeline),
                     std::nullopt, /*older=*/true};
  }
  if (now.timeline == journal.timeline) {
    if (now.history != journal.timeline_history) {
      return LogChange{fmt::format("the source's timeline {} is not the one of that number that the "
                                   "mirror has followed",
                                   now.timeline),
                       std::nullopt};
    }
    if (now.position < resume.lsn) {
      return LogChange{fmt::format("the source was restored to an earlier point: its log ends at {}, "
                                   "the mirror has commits up to {}",
                                   now.position.ToString(), resume.lsn.ToString()),
                       std::nullopt};
    }
    return std::nullopt;
  }
  const auto left = source::LeftAt(now.history, journal.timeline);
  if (!left) {
    return LogChange{fmt::format("the source's timeline {} does not come from timeline {}, which the "
                                 "mirror has followed",
                                 now.timeline, journal.timeline),
                     std::nullopt};
  }
  if (*left < resume.lsn) {
    return LogChange{fmt::format("the source went on from {} on timeline {}, without commits up to {} "
                                 "that the mirror has",
                                 left->ToString(), now.timeline, resume.lsn.ToString()),
                     *left};
  }
  return std::nullopt;
}

}  // namespace tidemark::capture
