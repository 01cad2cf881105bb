// Preflight's judgement of each candidate table. Used by preflight.cc only.
#pragma once

#include "pg/connection.h"
#include "source/postgres/preflight.h"

namespace tidemark::source {

/// Goes over report.tables: those that cannot be mirrored are taken out and named in
/// report.problems, the others get their notes and insert_only. Needs report.publication.
void RefuseUnfitTables(pg::Connection& source, const PreflightOptions& options,
                       PreflightReport& report);

/// Notes which of report.tables have heirs that are not among them. After the unfit ones are out.
void NoteMissingHeirs(pg::Connection& source, PreflightReport& report);

}  // namespace tidemark::source
