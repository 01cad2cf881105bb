#include "source/postgres/log_place.h"

#include <fmt/format.h>

#include <sstream>

#include "base/error.h"

namespace tidemark::source {

LogPlace InspectLog(pg::Connection& replication) {
  const auto identity = replication.Execute("IDENTIFY_SYSTEM");
  LogPlace place{.system_identifier = identity.str(0, 0),
                 .timeline = static_cast<uint32_t>(identity.int64(0, 1)),
                 .position = base::Lsn::Parse(identity.text(0, 2)),
                 .history = ""};
  if (place.timeline > 1) {
    place.history =
        replication.Execute(fmt::format("TIMELINE_HISTORY {}", place.timeline)).str(0, 1);
  }
  return place;
}

// Each line: the timeline, a tab, where it was left, a tab, why. Comments begin with #.
std::optional<base::Lsn> LeftAt(const std::string& history, uint32_t ancestor) {
  std::istringstream lines(history);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string timeline, position;
    if (!(words >> timeline) || timeline.starts_with('#')) continue;
    if (timeline.find_first_not_of("0123456789") != std::string::npos || !(words >> position)) {
      throw base::Error(base::kProtocolViolation,
                        fmt::format("the source's timeline history has a line that is none: {}", line));
    }
    if (timeline == std::to_string(ancestor)) return base::Lsn::Parse(position);
  }
  return std::nullopt;
}

}  // namespace tidemark::source
