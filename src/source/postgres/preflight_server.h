// Preflight's questions about the server as a whole: settings, free slots, privileges, encoding.
// Used by preflight.cc only.
#pragma once

#include "base/error.h"
#include "pg/connection.h"
#include "source/postgres/preflight.h"

namespace tidemark::source {

inline constexpr base::SqlState kConfigurationLimitExceeded{"53400"};

/// `replication` may be null; pg_control_system() then gives identifier and timeline.
ServerFacts LoadServerFacts(pg::Connection& source, pg::Connection* replication);

/// Needs report.server and report.slot; adds to report.problems.
void CheckServer(pg::Connection& source, const PreflightOptions& options, PreflightReport& report);

}  // namespace tidemark::source
