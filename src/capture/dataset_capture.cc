#include "capture/dataset_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/kill_point.h"
#include "capture/capture_journal.h"
#include "capture/position_json.h"
#include "temporal/plane.h"
#include "temporal/reduction.h"
#include "temporal/reshape.h"

namespace tidemark::capture {

using base::Error;
using temporal::Dataset;
using temporal::DatasetColumn;
using temporal::Strategy;

namespace {

// Small enough that a batch, its encoded rows and the buffers on both lines stay far from memory's
// end.
constexpr int64_t kBatchBytes = 4 * 1024 * 1024;
constexpr std::chrono::hours kReadMax{24};

base::Timestamp Now() { return base::Timestamp::FromSystem(std::chrono::system_clock::now()); }

bool IsOurs(const std::string& name) {
  return name == "_from" || name == "_to" || name == "_hash" || name.starts_with("_dropped_");
}

}  // namespace

DatasetCapture::DatasetCapture(pg::Connection& store, int64_t capture,
                               const PlannedDataset& planned)
    : store_(&store), capture_(capture), planned_(&planned) {}

int DatasetCapture::Register() {
  journal_ = EnsureDatasetJournal(*store_, *planned_);
  return journal_;
}

std::unique_ptr<source::Reader> DatasetCapture::OpenReader(const source::Limit& limit) {
  const source::ReadOptions options{.limits = {.bytes_max = kBatchBytes}};
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
  const auto attached = FindAttached(*store_, journal_);
  first_ = !attached;
  if (attached) {
    dataset_ = *attached;
    const auto state = temporal::LoadDatasetState(*store_, dataset_.id);
    if (planned_->strategy == Strategy::kCursor && state && state->resume) {
      after_ = ParseCursor(*state->resume);
    }
    return;
  }
  ForgetUnpublished(*store_, journal_);
  dataset_ = Dataset{};
}

void DatasetCapture::Read(const Progressed& progressed, std::stop_token stop) {
  const source::Limit limit{base::Deadline::After(kReadMax), stop};
  Prepare();
  relation_ = planned_->open();
  extracted_from_ = Now();
  const auto reader = OpenReader(limit);
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
  Fill(*reader, limit, progressed);
  extracted_to_ = Now();
  base::KillPoint("stage.done");
  if (first_) {
    const auto relation = temporal::RelationOf(dataset_, not_null_);
    if (stage_) temporal::LoadFromStage(*store_, dataset_, relation, *stage_);
    first_transition_ = temporal::FinishFirstLoad(*store_, dataset_, relation, rows_);
  }
}

void DatasetCapture::Fill(source::Reader& reader, const source::Limit& limit,
                          const Progressed& progressed) {
  stage_.reset();
  std::optional<temporal::FirstLoad> load;
  std::unique_ptr<temporal::BatchCopy> staged;
  const auto& schema = reader.shape().schema;
  if (first_ && dataset_.AllBinary()) {
    load.emplace(*store_, dataset_, temporal::RelationOf(dataset_, not_null_), schema,
                 translations_);
  } else {
    stage_ = temporal::Stage::Create(*store_, capture_, dataset_.id, columns_);
    staged = stage_->Fill(*store_, schema, translations_);
  }
  temporal::BatchCopy& copy = load ? load->copy() : *staged;
  int64_t reported = 0;
  rows_ = 0;
  for (;;) {
    const auto step = reader.Next(limit);
    if (const auto* end = std::get_if<source::End>(&step)) {
      position_ = end->position;
      rows_ = end->rows;
      break;
    }
    const auto& batch = std::get<source::Batch>(step);
    copy.Write(*batch.rows);
    base::KillPoint("stage.after_batch");
    progressed(batch.first_ordinal, copy.bytes() - reported);
    reported = copy.bytes();
  }
  const int64_t stored = load ? load->Finish() : staged->Finish();
  if (stored != rows_) {
    throw Error(base::kDataCorrupted,
                fmt::format("{} rows were read, but {} stored", rows_, stored));
  }
  staged.reset();
  if (!stage_) return;
  try {
    stage_->Finish(*store_, rows_, planned_->key);
  } catch (const Error& error) {
    if (error.state() != base::kUniqueViolation) throw;
    temporal::RefuseStagedKeys(*store_, dataset_, *stage_, planned_->key);
    throw;
  }
}

temporal::CapturedMember DatasetCapture::Apply() {
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
    return member;
  }
  // As the store has it, also when an earlier try was rolled back.
  dataset_ = *FindAttached(*store_, journal_);
  const auto state = temporal::LoadDatasetState(*store_, dataset_.id);
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
  return member;
}

void DatasetCapture::CleanUp(bool published) {
  if (stage_) stage_->Drop(*store_);
  stage_.reset();
  if (!published && first_ && journal_ != 0) ForgetUnpublished(*store_, journal_);
}

}  // namespace tidemark::capture
