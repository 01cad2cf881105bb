// Preflight of every mirror in a configuration, for `check` and `up`: connects to each source,
// reads, creates nothing. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/config.h"
#include "pg/connection.h"
#include "source/postgres/preflight.h"

namespace tidemark::cli {

struct CheckedMirror {
  std::string name;
  source::PreflightReport report;
};

/// In the order of the configuration. `store` may be nullptr. Throws 08001 and the source's own
/// refusals, with the source's name as context.
std::vector<CheckedMirror> CheckMirrors(const Config& config, pg::Connection* store,
                                        const std::stop_token& stop);

/// A paragraph a mirror: what will be mirrored, then the table of problems and fixes.
std::string CheckText(const std::vector<CheckedMirror>& mirrors);
/// [{mirror, refused, server, publication, tables: […], problems: [{severity, table, what, fix,
/// sqlstate}]}]
nlohmann::json CheckJson(const std::vector<CheckedMirror>& mirrors);

/// [{severity, table, what, fix, sqlstate}]
nlohmann::json ProblemsJson(const std::vector<source::Problem>& problems);

bool AnyRefused(const std::vector<CheckedMirror>& mirrors);

}  // namespace tidemark::cli
