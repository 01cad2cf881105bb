// Preflight's question about the store: whether a first copy of so many tables can be published
// there. Used by preflight.cc only.
#pragma once

#include "source/postgres/preflight.h"

namespace tidemark::source {

/// Needs report.tables, those that will be mirrored; adds to report.problems. Nothing without
/// options.store.
void CheckStoreLocks(pg::Connection& source, const PreflightOptions& options,
                     PreflightReport& report);

}  // namespace tidemark::source
