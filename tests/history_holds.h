// For the ends of tests: the stored row versions of whatever a test has captured can be what was
// published.
#pragma once

#include <gtest/gtest.h>

#include "temporal/history_check.h"

namespace tidemark::tests {

inline void ExpectHistoryHolds(pg::Connection& store) {
  const auto known = store.Execute("SELECT to_regclass('tidemark.verification') IS NOT NULL");
  if (!known.boolean(0, 0)) return;
  for (const auto& dataset : temporal::LoadAttachedDatasets(store)) {
    for (const auto& fault : temporal::CheckHistory(store, dataset).faults) {
      ADD_FAILURE() << dataset.name.Display() << ": " << fault;
    }
  }
}

}  // namespace tidemark::tests
