// Preflight's questions about the publication: what it publishes, or, where there is none, which
// tables a new one could hold. Used by preflight.cc only.
#pragma once

#include <string>
#include <vector>

#include "pg/connection.h"
#include "source/postgres/preflight.h"

namespace tidemark::source {

PublicationFacts LoadPublication(pg::Connection& source, const std::string& name);

/// Missing and not to be created, flags that leave changes out, partitions published one by one.
void CheckPublication(pg::Connection& source, const PreflightOptions& options,
                      PreflightReport& report);

/// The publication's tables, or all ordinary and root-partitioned user tables when it does not
/// exist and may be created. Whether they are fit is not yet judged.
std::vector<PublishedTable> LoadCandidates(pg::Connection& source, const PreflightOptions& options,
                                           const PreflightReport& report);

/// Relations of the user's schemas that no publication can carry: unlogged, temporary and foreign
/// tables, views, sequences.
void ListUnmirrored(pg::Connection& source, const PreflightOptions& options,
                    PreflightReport& report);

}  // namespace tidemark::source
