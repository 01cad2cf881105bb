// Whether the stored row versions can be what was published: their periods, the transactions that
// they name, and their number at each publish. Reads the store only. What the rows' values were is
// not told by this: CheckChain (version_chain.h) does that for datasets outside mirrors, `verify`
// for mirrors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

struct HistoryCheck {
  base::QualifiedName name;
  int64_t versions = 0;             // current and closed ones
  std::vector<std::string> faults;  // each names a key, a tx or a basis; empty when all holds
};

/// Of one attached dataset:
///   - every version begins before it ends, and no two of one key overlap;
///   - both its ends name a tx that its journal has published and that changed this dataset;
///   - as many rows are current as tidemark.version says, and as many were alive at each publish as
///     its member says; no publish began more versions than it had puts, and where each put is a
///     version (outside mirrors) none fewer.
/// What retention has dropped is left out, and what was erased may be missing, but no more than
/// that. At most `faults_max` of each kind. Cost: three passes over current and history and a sort
/// by key, in statements that keep to the server's work_mem; at one snapshot.
HistoryCheck CheckHistory(pg::Connection& store, const Dataset& dataset, size_t faults_max = 10);

/// The attached datasets of all journals, by name.
std::vector<Dataset> LoadAttachedDatasets(pg::Connection& store);

}  // namespace tidemark::temporal
