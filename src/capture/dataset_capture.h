// One dataset of a capture: its source is read into a private stage (the first time into a current
// table that is not attached yet), later compared and applied inside the transaction that publishes
// all members. Nothing is visible in between. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/capture_member.h"
#include "capture/capture_plan.h"
#include "pg/connection.h"
#include "temporal/capture_publish.h"
#include "temporal/dataset.h"
#include "temporal/first_load.h"
#include "temporal/history.h"
#include "temporal/put_digest.h"
#include "temporal/row_encoder.h"
#include "temporal/stage.h"
#include "temporal/types.h"

namespace tidemark::capture {

class DatasetCapture : public CaptureMember {
 public:
  /// Borrows the store's connection, which is one to `store_dsn`, and the plan.
  DatasetCapture(pg::Connection& store, std::string store_dsn, int64_t capture,
                 const PlannedDataset& planned, temporal::HistoryLimits history);

  int Register() override;
  /// Throws the source's errors, 42703 for a key that is no column, 0A000 for what cannot be kept,
  /// and on a first capture 23505 or 23502 for bad keys.
  void Read(Progress& progress, const RowsRead& rows_read, std::stop_token stop) override;
  void Apply(temporal::CaptureContents& contents, std::stop_token stop) override;
  MemberTotals Settle(const temporal::CaptureContents& contents) override;
  /// Drops the stage; the rows, too, unless they were published.
  void CleanUp(bool published) override;
  int order() const override { return dataset_.id; }

 private:
  std::unique_ptr<source::Reader> OpenReader(const source::Limit& limit);
  void TakeShape(const source::RelationShape& shape);
  void Prepare();
  bool CanSift() const;
  // Where rows go, and who is told how many there are.
  struct Reading;
  void Pull(std::unique_ptr<source::Reader> reader, bool with_ordinals, const Reading& reading,
            temporal::BatchCopy& copy);
  void LoadFirst(std::unique_ptr<source::Reader> reader, const Reading& reading);
  void StageAll(std::unique_ptr<source::Reader> reader, const Reading& reading);
  bool StageSifted(std::unique_ptr<source::Reader> reader, const Reading& reading);

  pg::Connection* store_;
  std::string store_dsn_;
  int64_t capture_;
  const PlannedDataset* planned_;
  temporal::HistoryLimits history_;
  int journal_ = 0;
  bool first_ = false;
  std::unique_ptr<source::SourceRelation> relation_;

  // The source's shape, as the store must know it.
  std::vector<temporal::DatasetColumn> columns_;
  std::vector<std::string> not_null_, nullable_;
  temporal::TypeMap types_;
  temporal::Translations translations_;

  temporal::Dataset dataset_;
  std::optional<temporal::DatasetState> state_;  // when it was read; none before the first publish
  std::optional<temporal::Stage> stage_;
  std::unique_ptr<temporal::PutDigest> digest_;  // of a first capture's rows, in the making
  temporal::TransitionSummary first_transition_;
  std::optional<source::CursorPosition> after_;
  source::Position position_;
  int64_t rows_ = 0;
  base::Timestamp extracted_from_, extracted_to_;
};

}  // namespace tidemark::capture
