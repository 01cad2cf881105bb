// A table or view of a PostgreSQL server as a source relation: complete by COPY in one snapshot, by
// cursor through keyset_reader.h. Opens one connection of its own at first use and keeps it.
#pragma once

#include <memory>
#include <string>

#include "source/reader.h"

namespace tidemark::source {

struct PostgresOptions {
  std::string dsn;
  std::string relation;  // as SQL names it; without a schema it is public's
  /// An exported snapshot for ReadAll, so that several relations are read as of one moment. Empty:
  /// each read has its own.
  std::string snapshot;
};

/// Connects at the first call, not here.
std::unique_ptr<SourceRelation> OpenPostgresRelation(PostgresOptions options);

}  // namespace tidemark::source
