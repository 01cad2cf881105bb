// What one capture of datasets outside mirrors is to do: which relations, kept as what, by which
// strategy. Values; made by cli from the configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "source/reader.h"
#include "temporal/dataset.h"

namespace tidemark::capture {

struct PlannedDataset {
  std::string name;             // as it is declared
  base::QualifiedName in_store;
  temporal::Strategy strategy = temporal::Strategy::kSnapshot;
  std::vector<std::string> key;
  std::string cursor;           // kCursor only
  std::string overlap;          // as source::CursorPlan's
  std::string source;           // the source's declared name
  std::string source_kind;      // postgres, adbc, files
  /// Contacts nothing yet.
  std::function<std::unique_ptr<source::SourceRelation>()> open;
};

}  // namespace tidemark::capture
