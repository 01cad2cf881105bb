// The source of a mirror before its changes are read: what preflight says of it, whether it is still
// the one that was copied, and how its tables are kept. Contacts the source. One thread.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/journal.h"
#include "capture/mirror_options.h"
#include "capture/progress.h"
#include "pg/connection.h"
#include "source/postgres/preflight.h"
#include "temporal/dataset.h"
#include "temporal/publish.h"
#include "temporal/types.h"

namespace tidemark::capture {

/// An error as status shows it.
Complaint ComplaintOf(const base::Error& error);

/// Preflight for the first copy, of the mirror's own relation only where it has one; what is
/// standing goes to `progress`. Creates nothing.
source::PreflightReport InspectSource(pg::Connection& store, const MirrorOptions& options,
                                      Progress& progress, std::stop_token stop);

/// Why nothing can be mirrored: the gravest problem; nullopt when something can.
std::optional<base::Error> RefusalOf(const source::PreflightReport& report);

/// Makes the publication if there is none, and keeps what the source is.
void AdoptSource(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                 const source::PreflightReport& report, std::stop_token stop);

/// A connection to the source, once it has proved to be the server that was mirrored. Throws 55000
/// when it is another one.
pg::Connection OpenSameSource(const MirrorOptions& options, const Journal& journal,
                              std::stop_token stop);

/// From where the slot's stream is to be read. A slot that is gone, lost, or has been moved on by
/// somebody else leaves a gap: then it is made anew, every table of the journal is marked to be read
/// whole again, and the answer is the new slot's place. Throws 42704 or 55000 for a gap that only a
/// person may close.
base::Lsn PrepareSlot(pg::Connection& source, pg::Connection& store, const MirrorOptions& options,
                      const Journal& journal, const temporal::Resume& resume, std::stop_token stop);

/// The tables of a journal and how the values of their columns travel.
struct FollowedTables {
  std::vector<temporal::Dataset> datasets;
  temporal::TypeMap types;
};
FollowedTables LoadFollowedTables(pg::Connection& store, pg::Connection& source, int journal);

}  // namespace tidemark::capture
