// One mirrored table as the stream sees it (mirror_stream.cc, mirror_sync.cc). A value without a thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "capture/dataset_shape.h"
#include "capture/mirror_stream.h"
#include "capture/spool.h"
#include "capture/table_sync.h"

namespace tidemark::capture {

struct MirrorStream::Table {
  std::unique_ptr<temporal::Dataset> dataset;        // nullptr: new, not readable yet
  std::unique_ptr<temporal::Transition> transition;  // borrows dataset and types
  std::shared_ptr<const temporal::TypeMap> types;
  bool announced = false;  // its Relation message has been seen and fits

  // Of the batch, already applied parts included.
  int64_t puts = 0, deletions = 0, rows_added = 0;
  bool changed = false;

  // While it is read whole: what the stream brings meanwhile, and the reading, unless it is to begin
  // again later.
  std::unique_ptr<Spool> waiting;
  std::unique_ptr<TableSync> sync;
  base::Deadline again = base::Deadline::Never();
  std::optional<Complaint> failure;  // of the last try
  std::string state;         // of a new one: what the catalog said of it
  base::QualifiedName name;  // of a new one
  std::unique_ptr<TableSync> published;  // in the batch

  std::set<uint32_t> truncated_by;  // whose TRUNCATE of it has been seen

  /// From now on kept as `now`.
  void Keep(temporal::Dataset now, std::shared_ptr<const temporal::TypeMap> with) {
    transition.reset();
    types = std::move(with);
    dataset = std::make_unique<temporal::Dataset>(std::move(now));
    transition = std::make_unique<temporal::Transition>(*dataset, TranslationsOf(*dataset, *types));
  }
};

}  // namespace tidemark::capture
