// One dataset of a capture: its source is read into a private stage (the first time into a current
// table that is not attached yet), later compared and applied inside the transaction that publishes
// all members. Nothing is visible in between. One thread.
//
//   Register ──► Read (source ─► stage) ──► Apply (shape, reduce, apply) ──► CleanUp
//      ▲            │ lost connection
//      └────────────┘ Discard, then again
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/capture_plan.h"
#include "pg/connection.h"
#include "temporal/capture_publish.h"
#include "temporal/dataset.h"
#include "temporal/first_load.h"
#include "temporal/stage.h"
#include "temporal/types.h"

namespace tidemark::capture {

class DatasetCapture {
 public:
  using Progressed = std::function<void(int64_t rows, int64_t bytes)>;

  /// Borrows the store's connection and the plan.
  DatasetCapture(pg::Connection& store, int64_t capture, const PlannedDataset& planned);

  /// Finds or makes its journal, whose id it returns. Throws 42710 when its name or place is taken.
  int Register();

  /// Reads the source to its end. Contacts it; the only step that does. Throws the source's errors,
  /// 42703 for a key that is no column, 0A000 for what cannot be kept, and on a first capture 23505
  /// or 23502 for bad keys.
  void Read(const Progressed& progressed, std::stop_token stop);

  /// Compares and writes, inside the caller's transaction. May be called again after a rollback.
  temporal::CapturedMember Apply();

  /// Drops what Read has made. The stage only, once it has been published.
  void CleanUp(bool published);

  const PlannedDataset& planned() const { return *planned_; }
  /// By which members are ordered, so that two captures never wait for each other.
  int dataset_id() const { return dataset_.id; }
  int64_t rows() const { return rows_; }
  /// As it was applied.
  const temporal::Dataset& dataset() const { return dataset_; }

 private:
  std::unique_ptr<source::Reader> OpenReader(const source::Limit& limit);
  void TakeShape(const source::RelationShape& shape);
  void Prepare();
  void Fill(source::Reader& reader, const source::Limit& limit, const Progressed& progressed);

  pg::Connection* store_;
  int64_t capture_;
  const PlannedDataset* planned_;
  int journal_ = 0;
  bool first_ = false;
  std::unique_ptr<source::SourceRelation> relation_;

  // The source's shape, as the store must know it.
  std::vector<temporal::DatasetColumn> columns_;
  std::vector<std::string> not_null_, nullable_;
  temporal::TypeMap types_;
  temporal::Translations translations_;

  temporal::Dataset dataset_;
  std::optional<temporal::Stage> stage_;
  temporal::TransitionSummary first_transition_;
  std::optional<source::CursorPosition> after_;
  source::Position position_;
  int64_t rows_ = 0;
  base::Timestamp extracted_from_, extracted_to_;
};

}  // namespace tidemark::capture
