// Dataset versions of snapshot and cursor datasets: SQL that hashes rows and transitions exactly as
// docs/formats/version.md says, and the recomputation of a whole chain from the stored history. The
// texts of values depend on the session's settings: use connections of OpenStore only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// SQL for the hash of one put or one deletion. `texts` are SQL expressions of type text, one for
/// each column of the row or of the key.
std::string RowHashSql(const pg::Connection& store, char kind,
                       const std::vector<std::string>& texts);

/// The digest, in hex, of the transition whose row hashes are selected by `hashes`, a query with
/// one column `h`. Inside a transaction; each hash is computed once, in parallel where the server
/// may.
std::string ComputeDigest(pg::Connection& store, const std::string& hashes);

/// Where a chain does not hold.
struct ChainBreak {
  int64_t basis = 0, tx = 0;
  std::string what;
};

struct ChainCheck {
  int dataset = 0;
  base::QualifiedName name;
  int64_t versions = 0;            // recomputed and found right
  std::vector<ChainBreak> breaks;  // the first one only; empty if the chain holds
};

/// Recomputes the versions of one snapshot or cursor dataset from the stored row versions. Cost:
/// one pass over current and history for each shape that the dataset has had.
ChainCheck CheckChain(pg::Connection& store, const Dataset& dataset);

/// The attached datasets outside mirrors, by name.
std::vector<Dataset> LoadVersionedDatasets(pg::Connection& store);

}  // namespace tidemark::temporal
