// Is the log that the source writes now the one that the mirror has followed? A source may be
// another server, may have been restored to an earlier point, or be a standby that was promoted
// before it had received all. Positions and transactions of such a log say nothing of the ones
// before. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/lsn.h"
#include "capture/journal.h"
#include "source/postgres/log_place.h"
#include "temporal/publish.h"

namespace tidemark::capture {

struct LogChange {
  std::string reason;
  /// Up to here it is still the same log; nullopt when nothing can be said.
  std::optional<base::Lsn> common_to;
  /// The source is on an older timeline: an old primary, perhaps, that somebody points to by
  /// mistake.
  bool older = false;
};

/// Nothing when everything that the store has committed is in the log that the source writes now,
/// be it on a newer timeline.
std::optional<LogChange> CompareLogs(const source::LogPlace& now, const Journal& journal,
                                     const temporal::Resume& resume);

}  // namespace tidemark::capture
