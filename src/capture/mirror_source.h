// The source of a mirror before its changes are read: what preflight says of it, whether it is
// still the one that was followed, and how its tables are kept. Contacts the source. One thread.
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

/// A source that can be followed, and from where.
struct MetSource {
  pg::Connection connection;
  temporal::Resume resume;  // `received` is where the stream is to begin
};
/// Compares the source with what was followed before, and makes ready what is needed to go on. A
/// slot that is gone, lost, or has been moved on by somebody else is made anew; a log that is
/// another one (log_change.h) is followed from its slot's place on. Both leave a gap: every table
/// of the journal is then marked to be read whole again. Throws 42704 or 55000 for a gap that only
/// a person may close.
MetSource MeetSource(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                     std::stop_token stop);

/// What to do about an `error` that ended the stream. Where the publication was dropped and made
/// again, the source cannot decode what was written in between (before version 18): then every
/// table is marked to be read whole again and the slot is dropped, unless only a person may decide
/// that.
void MindPublication(pg::Connection& store, const MirrorOptions& options, const Journal& journal,
                     const base::Error& error, std::stop_token stop);

/// Whether a change whose row was not there (`error`) met rows that the source had rewritten since
/// anybody looked.
bool MetRewrittenRows(const MirrorOptions& options, const temporal::Dataset& table,
                      const base::Error& error, std::stop_token stop);

/// From the next start on the table's changes wait, and it is read whole: the store refused a
/// change of it with `error`.
void SetAside(const MirrorOptions& options, const temporal::Dataset& table,
              const base::Error& error, std::stop_token stop);

/// The tables of a journal and how the values of their columns travel.
struct FollowedTables {
  std::vector<temporal::Dataset> datasets;
  temporal::TypeMap types;
};
FollowedTables LoadFollowedTables(pg::Connection& store, pg::Connection& source,
                                  const MirrorOptions& options, int journal);

}  // namespace tidemark::capture
