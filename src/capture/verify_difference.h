// Finding the rows in which two tables of unequal checksum differ, by splitting both along the
// hash of their keys until what is left is small:
//
//   whole table ──► 1,024 buckets ──► the first few that differ ──► 1,024 of each … ──► rows
//
// Each step is one scan on either side and answers O(buckets) rows, never O(rows).
#pragma once

#include <cstddef>
#include <vector>

#include "capture/verify.h"
#include "capture/verify_query.h"
#include "capture/verify_server.h"
#include "temporal/dataset.h"

namespace tidemark::capture {

/// One table as seen by each of the two servers.
struct VerifyPair {
  VerifyServer& source;
  const VerifyQuery& source_query;
  VerifyServer& mirror;
  const VerifyQuery& mirror_query;
};

/// At most `differences_max` rows that differ; at least one if the tables do. `rows` is the
/// greater of the two counts.
std::vector<RowDifference> FindDifferences(const temporal::Dataset& dataset, const VerifyPair& pair,
                                           int64_t rows, size_t differences_max);

}  // namespace tidemark::capture
