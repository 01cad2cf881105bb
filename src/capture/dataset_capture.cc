#include "capture/dataset_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/kill_point.h"
#include "capture/capture_journal.h"
#include "capture/position_json.h"
#include "capture/row_feed.h"
#include "temporal/plane.h"
#include "temporal/reduction.h"
#include "temporal/reshape.h"

namespace tidemark::capture {

using base::Error;
using temporal::Dataset;
using temporal::DatasetColumn;
using temporal::Strategy;

namespace {

// Small enough that a batch and its encoded rows stay in the processor's caches, several being on
// their way at once.
constexpr int64_t kBatchBytes = 1024 * 1024;
constexpr int64_t kBatchRows = 8 * 1024;
constexpr std::chrono::hours kReadMax{24};

base::Timestamp Now() { return base::Timestamp::FromSystem(std::chrono::system_clock::now()); }

bool IsOurs(const std::string& name) {
  return name == "_from" || name == "_to" || name == "_hash" || name.starts_with("_dropped_");
}

}  // namespace

DatasetCapture::DatasetCapture(pg::Connection& store, std::string store_dsn, int64_t capture,
                               const PlannedDataset& planned, temporal::HistoryLimits history)
    : store_(&store),
      store_dsn_(std::move(store_dsn)),
      capture_(capture),
      planned_(&planned),
      history_(history) {}

struct DatasetCapture::Reading {
  const source::Limit& limit;
  Progress& progress;
  const RowsRead& rows_read;
};

int DatasetCapture::Register() {
  journal_ = EnsureDatasetJournal(*store_, *planned_);
  return journal_;
}

std::unique_ptr<source::Reader> DatasetCapture::OpenReader(const source::Limit& limit) {
  const source::ReadOptions options{.limits = {.rows_max = kBatchRows, .bytes_max = kBatchBytes}};
  if (planned_->strategy == Strategy::kSnapshot) return relation_->ReadAll(options, limit);
  return relation_->ReadSince({.cursor = planned_->cursor,
                               .key = planned_->key,
                               .after = after_,
                               .overlap = planned_->overlap},
                              options, limit);
}

void DatasetCapture::TakeShape(const source::RelationShape& shape) {
  types_ = temporal::EnsureTypes(*store_, shape.types);
  columns_.clear();
  translations_.clear();
  not_null_.clear();
  nullable_.clear();
  std::set<std::string> names;
  for (const auto& from : shape.columns) {
    const auto& column = from.column;
    if (IsOurs(column.name)) {
      throw Error(base::kFeatureNotSupported,
                  fmt::format("column \"{}\" has a name that Tidemark uses itself", column.name))
          .Hint("Give the column another name at the source, or capture a view of it.");
    }
    if (!names.insert(column.name).second) {
      throw Error(base::kFeatureNotSupported,
                  fmt::format("there are two columns called \"{}\"", column.name));
    }
    const bool known = types_.Contains(column.type);
    if (known && !from.as_text && !types_.At(column.type).binary) {
      throw Error(base::kFeatureNotSupported,
                  fmt::format("column \"{}\": the store cannot take type {} as the source sends it",
                              column.name, column.type_sql));
    }
    columns_.push_back(
        {.number = static_cast<int>(columns_.size()) + 1,
         .name = column.name,
         .source_type = column.type,
         .type_modifier = column.modifier,
         .type_sql = known ? types_.StoreSql(column.type, column.type_sql) : column.type_sql,
         .binary = !from.as_text});
    const bool translated =
        known && !from.as_text && wire::NeedsTranslation(types_.At(column.type).plan);
    translations_.push_back(translated ? &types_.At(column.type).plan : nullptr);
    (from.nullable ? nullable_ : not_null_).push_back(column.name);
  }
  for (const auto& key : planned_->key) {
    if (!names.contains(key)) {
      throw Error(base::kUndefinedColumn, fmt::format("key column \"{}\" does not exist", key));
    }
  }
}

// Decides whether this is the first capture, and registers the dataset then.
void DatasetCapture::Prepare() {
  after_.reset();
  digest_.reset();
  const auto attached = FindAttached(*store_, journal_);
  first_ = !attached;
  if (attached) {
    dataset_ = *attached;
    state_ = temporal::LoadDatasetState(*store_, dataset_.id);
    if (planned_->strategy == Strategy::kCursor && state_ && state_->resume) {
      after_ = ParseCursor(*state_->resume);
    }
    return;
  }
  ForgetUnpublished(*store_, journal_);
  dataset_ = Dataset{};
}

// Whether rows that are already there can be told by their bytes: the source sends what the store
// has columns for, all of it as bytes.
bool DatasetCapture::CanSift() const {
  const auto& kept = dataset_.columns;
  return planned_->strategy == Strategy::kSnapshot && state_ && state_->live_rows > 0 &&
         dataset_.keying == temporal::Keying::kKey && planned_->key == dataset_.key_columns &&
         columns_.size() == kept.size() &&
         std::ranges::all_of(columns_, [&](const DatasetColumn& column) {
           return column.binary && std::ranges::any_of(kept, [&](const DatasetColumn& one) {
                    return one.name == column.name && one.type_sql == column.type_sql;
                  });
         });
}

void DatasetCapture::Read(Progress& progress, const RowsRead& rows_read, std::stop_token stop) {
  const source::Limit limit{base::Deadline::After(kReadMax), stop};
  const Reading reading{limit, progress, rows_read};
  Prepare();
  relation_ = planned_->open();
  extracted_from_ = Now();
  auto reader = OpenReader(limit);
  TakeShape(reader->shape());
  if (first_) {
    dataset_.journal = journal_;
    dataset_.name = planned_->in_store;
    dataset_.keying = temporal::Keying::kKey;
    dataset_.key_columns = planned_->key;
    dataset_.columns = columns_;
    dataset_.strategy = planned_->strategy;
    pg::Transaction tx(*store_);
    temporal::StoreDataset(*store_, dataset_);
    std::move(tx).Commit();
  }
  if (first_ && dataset_.AllBinary()) {
    LoadFirst(std::move(reader), reading);
  } else if (!CanSift()) {
    StageAll(std::move(reader), reading);
  } else if (!StageSifted(std::move(reader), reading)) {
    extracted_from_ = Now();
    StageAll(OpenReader(limit), reading);
  }
  rows_read(rows_);
  extracted_to_ = Now();
  base::KillPoint("stage.done");
  if (first_) {
    const auto relation = temporal::RelationOf(dataset_, not_null_);
    if (stage_) temporal::LoadFromStage(*store_, dataset_, relation, *stage_);
    first_transition_ =
        temporal::FinishFirstLoad(*store_, dataset_, relation, rows_, digest_.get());
    digest_.reset();
  }
}

// All rows of the reader, which ends here.
void DatasetCapture::Pull(std::unique_ptr<source::Reader> reader, bool with_ordinals,
                          const Reading& reading, temporal::BatchCopy& copy) {
  RowFeed feed(std::move(reader),
               {.write_ordinal = with_ordinals, .translations = translations_}, reading.limit);
  int64_t bytes_told = 0, rows_told = 0;
  while (auto piece = feed.Next(reading.limit)) {
    const int64_t first = piece->first_ordinal;
    copy.Write(std::move(piece->rows));
    base::KillPoint("stage.after_batch");
    reading.progress.AddCopied(first - rows_told, copy.bytes() - bytes_told);
    rows_told = first;
    bytes_told = copy.bytes();
    reading.rows_read(rows_told);
  }
  position_ = feed.end().position;
  rows_ = feed.end().rows;
}

namespace {

void ExpectStored(int64_t read, int64_t stored) {
  if (stored == read) return;
  throw Error(base::kDataCorrupted, fmt::format("{} rows were read, but {} stored", read, stored));
}

}  // namespace

void DatasetCapture::LoadFirst(std::unique_ptr<source::Reader> reader, const Reading& reading) {
  stage_.reset();
  temporal::FirstLoad load(*store_, dataset_, temporal::RelationOf(dataset_, not_null_));
  Pull(std::move(reader), /*with_ordinals=*/false, reading, load.copy());
  ExpectStored(rows_, load.Finish());
  digest_ = load.TakeDigest();
}

void DatasetCapture::StageAll(std::unique_ptr<source::Reader> reader, const Reading& reading) {
  stage_ = temporal::Stage::Create(*store_, capture_, dataset_.id, columns_);
  const auto copy = stage_->Fill(*store_);
  Pull(std::move(reader), /*with_ordinals=*/true, reading, *copy);
  ExpectStored(rows_, copy->Finish());
  try {
    stage_->Finish(*store_, rows_, planned_->key);
  } catch (const Error& error) {
    if (error.state() != base::kUniqueViolation) throw;
    temporal::RefuseStagedKeys(*store_, dataset_, *stage_, planned_->key);
    throw;
  }
}

// False: a key stands twice in the source, and the whole relation must be staged to say where.
bool DatasetCapture::StageSifted(std::unique_ptr<source::Reader> reader, const Reading& reading) {
  stage_ = temporal::Stage::Create(*store_, capture_, dataset_.id, columns_);
  temporal::Sift sift(store_dsn_, dataset_, columns_, state_->live_rows, reading.limit.stop);
  const auto copy = stage_->Fill(*store_, &sift);
  Pull(std::move(reader), /*with_ordinals=*/true, reading, *copy);
  const int64_t staged = copy->Finish();
  ExpectStored(rows_, staged + sift.met());
  stage_->Finish(*store_, staged, planned_->key, sift.Finish());
  return !stage_->RepeatsMetKey(*store_, dataset_);
}

void DatasetCapture::Apply(temporal::CaptureContents& contents, std::stop_token) {
  temporal::CapturedMember member{.dataset = dataset_.id,
                                  .changed = true,
                                  .tx = temporal::kFirstTx,
                                  .transition = first_transition_,
                                  .extracted_from = extracted_from_,
                                  .extracted_to = extracted_to_,
                                  .position = EvidenceJson(position_),
                                  .source_lsn = LsnOf(position_),
                                  .resume = std::nullopt,
                                  .version = "",
                                  .live_rows = 0};
  if (position_.resume) member.resume = CursorJson(*position_.resume);
  if (first_) {
    temporal::Attach(*store_, dataset_, temporal::RelationOf(dataset_, not_null_), member.tx);
    base::KillPoint("apply.done");
    contents.datasets.push_back(std::move(member));
    return;
  }
  // As the store has it, also when an earlier try was rolled back.
  dataset_ = *FindAttached(*store_, journal_);
  const auto state = temporal::LoadDatasetState(*store_, dataset_.id);
  if (state->tx_last != state_->tx_last) {
    throw Error(base::kNotInPrerequisiteState,
                "another process has captured the dataset meanwhile");
  }
  const int64_t next = state->tx_last + 1;
  const bool complete = planned_->strategy == Strategy::kSnapshot;
  temporal::FollowShape(*store_, dataset_,
                        {.columns = columns_,
                         .key = planned_->key,
                         .nullable = nullable_,
                         .complete = complete},
                        next);
  temporal::Reduction reduction(*store_, dataset_, *stage_);
  member.transition = reduction.Reduce(state->live_rows, complete);
  reduction.Apply(next);
  StoreStrategy(*store_, dataset_.id, planned_->strategy);
  member.changed = !member.transition.empty();
  member.tx = member.changed ? next : state->tx_last;
  contents.datasets.push_back(std::move(member));
}

MemberTotals DatasetCapture::Settle(const temporal::CaptureContents& contents) {
  const auto published = std::ranges::find(contents.datasets, dataset_.id,
                                           &temporal::CapturedMember::dataset);
  const auto& transition = published->transition;
  if (transition.to_history > 0) {
    temporal::HistoryPartitions partitions(*store_, history_);
    partitions.Count(dataset_, transition.to_history);
    partitions.RollOver(dataset_, published->tx + 1);
  }
  return {.changed = published->changed,
          .puts = transition.puts,
          .deletions = transition.deletions,
          .live_rows = published->live_rows,
          .version = published->version};
}

void DatasetCapture::CleanUp(bool published) {
  if (stage_) stage_->Drop(*store_);
  stage_.reset();
  if (!published && first_ && journal_ != 0) ForgetUnpublished(*store_, journal_);
}

}  // namespace tidemark::capture
