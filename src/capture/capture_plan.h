// What one capture is to do: which datasets, kept as what, by which strategy, and which mirrors.
// Values; made by cli from the configuration.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "capture/mirror_options.h"
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
  /// Contacts nothing yet. Not of kCdc.
  std::function<std::unique_ptr<source::SourceRelation>()> open;
  /// kCdc only: a whole mirror, or one relation of it. Its own name is `name`.
  std::optional<MirrorOptions> mirror;
};

}  // namespace tidemark::capture
