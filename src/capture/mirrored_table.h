// One mirrored table as the stream sees it (mirror_stream.h). A value without a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "capture/dataset_shape.h"
#include "capture/mirror_stream.h"
#include "capture/spool.h"
#include "capture/table_sync.h"

namespace tidemark::capture {

struct MirrorStream::Table {
  std::unique_ptr<temporal::Dataset> dataset;        // nullptr: new, not readable yet
  std::unique_ptr<temporal::Transition> transition;  // borrows dataset and types
  std::unique_ptr<temporal::Transition> leaving;     // the publishing thread's, while it is busy
  std::shared_ptr<const temporal::TypeMap> types;
  bool announced = false;  // its Relation message has been seen and fits
  // Which column of the stream, where they come in the order of their numbers at the source, each
  // of the dataset's is; empty when that is their order here, too.
  std::vector<size_t> places;

  // Of the batch, already applied parts included.
  int64_t puts = 0, deletions = 0, rows_added = 0;
  bool changed = false;

  // While it is read whole: what the stream brings meanwhile, and the reading, unless it is to
  // begin again later.
  std::unique_ptr<Spool> waiting;
  std::unique_ptr<TableSync> sync;
  base::Deadline again = base::Deadline::Never();
  std::optional<Complaint> failure;  // of the last try
  std::string state;         // of a new one: what the catalog said of it
  base::QualifiedName name;  // of a new one
  std::unique_ptr<TableSync> published;  // in the batch

  std::optional<std::set<int>> not_null;  // columns that the source refuses NULLs in, as followed
  base::Deadline nulls_again = base::Deadline::After({});  // not before
  /// Its columns by the catalog, which changed without a row that would have announced it.
  struct Look {
    std::string state;   // what is known once it has been followed
    std::optional<source::SeenColumns> seen;  // nullopt: they were just changing
    base::Lsn to;                             // the source's log after it
  };
  std::optional<Look> look;
  std::optional<uint32_t> announced_by;  // the newest transaction that brought a Relation message

  std::set<uint32_t> truncated_by;  // whose TRUNCATE of it has been seen

  /// From now on kept as `now`.
  void Keep(temporal::Dataset now, std::shared_ptr<const temporal::TypeMap> with) {
    transition.reset();
    leaving.reset();
    types = std::move(with);
    dataset = std::make_unique<temporal::Dataset>(std::move(now));
    const auto make = [&] {
      return std::make_unique<temporal::Transition>(*dataset, TranslationsOf(*dataset, *types));
    };
    transition = make();
    leaving = make();
    places.clear();
    const auto& columns = dataset->columns;
    if (std::ranges::is_sorted(columns, {}, &temporal::DatasetColumn::source_number)) return;
    for (const auto& column : columns) {
      places.push_back(static_cast<size_t>(std::ranges::count_if(columns, [&](const auto& other) {
        return other.source_number < column.source_number;
      })));
    }
  }
  size_t PlaceOf(size_t column) const { return places.empty() ? column : places[column]; }

  /// A row image of the stream in the order of the dataset's columns; in `buffer` unless it is
  /// already.
  wire::pgoutput::Tuple Arranged(wire::pgoutput::Tuple tuple,
                                 std::vector<wire::pgoutput::TupleField>& buffer) const {
    if (places.empty() || tuple.size() != places.size()) return tuple;
    buffer.clear();
    for (const size_t place : places) buffer.push_back(tuple[place]);
    return buffer;
  }
};

}  // namespace tidemark::capture
