// A table or a declared query behind any ADBC driver as a source relation. One query gives one
// moment as far as the database keeps its readers apart from its writers.
#pragma once

#include <memory>
#include <string>

#include "source/adbc/session.h"
#include "source/reader.h"

namespace tidemark::source {

struct AdbcOptions {
  AdbcDriverOptions driver;
  /// "table", "schema.table" or "catalog.schema.table"; a part in double quotes may hold dots.
  std::string relation;
  /// What is read instead of the relation; empty: all of the relation.
  std::string query;
};

/// Loads the driver and connects at the first call, not here. Throws 42601 for a malformed name.
std::unique_ptr<SourceRelation> OpenAdbcRelation(AdbcOptions options);

}  // namespace tidemark::source
