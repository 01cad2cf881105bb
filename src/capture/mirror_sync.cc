// The part of mirror_stream.h that sees to what the stream does not tell by itself: tables that are
// new, or are read whole again.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/mirrored_table.h"
#include "capture/source_connection.h"
#include "temporal/plane.h"
#include "temporal/reduction.h"
#include "temporal/reshape.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;
using base::Lsn;
using temporal::Dataset;
namespace pgoutput = wire::pgoutput;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::seconds kLookMax{60};
constexpr std::chrono::seconds kAgainSoon{1}, kAgainAfter{10};
// Tables that are read at the same time: each has a walsender and a slot of the source's few.
constexpr std::ptrdiff_t kSyncsMost = 3;

// A table's state while it is not published. Compared with any that comes later it asks for a
// reading.
constexpr const char* kNotPublished = "not published";

int64_t LiveRows(pg::Connection& store, int dataset) {
  const auto row = store.Execute("SELECT live_rows FROM tidemark.version WHERE dataset = $1",
                                 {std::to_string(dataset)});
  return row.rows() == 1 ? row.int64(0, 0) : 0;
}

}  // namespace

pg::Connection& MirrorStream::Source() {
  if (!source_ || !source_->IsOpen()) {
    source_ = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), {});
    source_->SetLimits(kLookMax, {});
  }
  return *source_;
}

// For what must be durable, or seen, whatever becomes of the transaction that is open.
pg::Connection& MirrorStream::Side() {
  if (!side_ || !side_->IsOpen()) {
    side_ = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax));
    side_->SetLimits(kLookMax, {});
  }
  return *side_;
}

// Of a single table there is nothing to be shown at once.
bool MirrorStream::AllAsked(const SourceView& view) const {
  return view.resyncs.size() > 1 && std::ranges::all_of(tables_, [&](const auto& each) {
    const auto& dataset = each.second->dataset;
    return !dataset || std::ranges::find(view.resyncs, dataset->id) != view.resyncs.end();
  });
}

void MirrorStream::Begin(const SourceView& view) {
  links_ = temporal::LoadLinks(Store(), journal_->id);
  NotePublished(view);
  AllowNulls(view);
  std::vector<pgoutput::RelationOid> asked;
  for (const auto& [oid, table] : tables_) {
    if (std::ranges::find(view.resyncs, table->dataset->id) != view.resyncs.end()) {
      asked.push_back(oid);
    }
  }
  for (const auto oid : asked) {
    auto at = tables_.find(oid);
    if (!IsPublished(view, oid)) {
      // On another server, or made again meanwhile, it has another OID.
      const auto again = std::ranges::find_if(view.tables, [&](const auto& state) {
        return IsMirrored(state) && NameInStore(state) == at->second->dataset->name &&
               !tables_.contains(state.oid);
      });
      if (again == view.tables.end()) continue;  // stands still
      at = Rekey(at, again->oid);
    }
    StartSync(at->first, *at->second, "asked for");
  }
  together_ = AllAsked(view);
}

bool MirrorStream::IsMirrored(const source::TableState& state) const {
  return !options_.only || state.name == options_.only->relation;
}

base::QualifiedName MirrorStream::NameInStore(const source::TableState& state) const {
  return options_.only ? options_.only->in_store : state.name;
}

bool MirrorStream::IsPublished(const SourceView& view, pgoutput::RelationOid oid) {
  return std::ranges::find(view.tables, oid, &source::TableState::oid) != view.tables.end();
}

MirrorStream::Tables::iterator MirrorStream::Rekey(Tables::iterator at,
                                                   pgoutput::RelationOid oid) {
  auto node = tables_.extract(at);
  node.key() = oid;
  const auto again = tables_.insert(std::move(node)).position;
  again->second->announced = announced_elsewhere_.contains(oid);
  return again;
}

void MirrorStream::OnView(const SourceView& view) {
  FollowNames(view.tables);
  together_ = together_ || AllAsked(view);
  std::vector<Complaint> complaints;
  for (const auto& state : view.tables) {
    if (!IsMirrored(state)) continue;
    auto found = tables_.find(state.oid);
    if (found == tables_.end()) {
      found = AdoptNewTable(view, state);
      if (found == tables_.end()) continue;
    }
    Table& table = *found->second;
    if (table.waiting) continue;
    Dataset& dataset = *table.dataset;
    const bool asked = std::ranges::find(view.resyncs, dataset.id) != view.resyncs.end();
    if (dataset.source_state.empty()) dataset.source_state = state.Text();
    const auto change = source::CompareStates(dataset.source_state, state, table.truncated_by);
    if (change == source::StateChange::kRows || asked) {
      StartSync(state.oid, table, asked ? "asked for" : "its rows may have changed unseen");
    } else if (dataset.source_state != state.Text()) {
      if (dataset.source_state.find("attributes " + state.attributes + "\n") == std::string::npos) {
        if (!table.look) Look(state.oid, table, state.Text());  // kept once it has been followed
      } else {
        dataset.source_state = state.Text();
        temporal::StoreSource(Store(), dataset);
        table.truncated_by.clear();
      }
    }
    if (!table.waiting && !draining_) FollowNulls(table, state);
  }
  for (const auto& [oid, table] : tables_) {
    if (!table->dataset || IsPublished(view, oid)) continue;
    if (!table->waiting && table->dataset->source_state != kNotPublished) {
      table->dataset->source_state = kNotPublished;  // what changes from here on is not sent
      temporal::StoreSource(Store(), *table->dataset);
    }
    complaints.push_back({base::kUndefinedTable.str(), "is not published any more", "",
                          "What is mirrored of it stays readable; publish it again to go on.",
                          table->dataset->name.schema + "." + table->dataset->name.name, false});
  }
  FollowInheritance(view, complaints);
  complaints_ = std::move(complaints);
  TellOfTables();
}

void MirrorStream::TellOfTables() {
  auto complaints = complaints_;
  for (const auto& [oid, left] : left_out_) complaints.push_back(left.complaint);
  for (const auto& [oid, table] : tables_) {
    if (table->failure) complaints.push_back(*table->failure);
  }
  progress_->SetTables(std::move(complaints));
}

// A table of a known one's name is its new incarnation once the old one is gone; others are new.
MirrorStream::Tables::iterator MirrorStream::AdoptNewTable(const SourceView& view,
                                                           const source::TableState& state) {
  const auto left = left_out_.find(state.oid);
  if (left != left_out_.end()) {
    if (left->second.state == state.Text() && !left->second.again.passed()) return tables_.end();
    left_out_.erase(left);
  }
  const auto name = NameInStore(state);
  for (auto it = tables_.begin(); it != tables_.end(); ++it) {
    if (!it->second->dataset || it->second->dataset->name != name) continue;
    if (IsPublished(view, it->first)) return tables_.end();
    // A reading of the one that is gone comes to nothing.
    it->second->sync.reset();
    it->second->waiting.reset();
    it->second->failure.reset();
    const auto again = Rekey(it, state.oid);
    StartSync(state.oid, *again->second, "the table was dropped and made again");
    return again;
  }
  auto added = tables_.emplace(state.oid, std::make_unique<Table>()).first;
  added->second->state = state.Text();
  added->second->announced = announced_elsewhere_.contains(state.oid);
  spdlog::info("table {} is published now: it is being copied", state.name.Display());
  StartSync(state.oid, *added->second, "");
  added->second->name = state.name;
  return added;
}

void MirrorStream::StartSync(pgoutput::RelationOid oid, Table& table, const std::string& reason) {
  if (table.dataset && !reason.empty()) {
    Side().Execute("SELECT tidemark.request_resync($1, $2)",
                   {std::to_string(table.dataset->id), reason});
    spdlog::info("{} is being read whole again: {}", table.dataset->name.Display(), reason);
  }
  if (!table.waiting) table.waiting = std::make_unique<Spool>();
  table.look.reset();  // the reading sees newer columns
  if (!MayRead()) {
    table.again = Deadline::After({});  // as soon as another has been read
    return;
  }
  table.sync = std::make_unique<TableSync>(
      Side(), TableSync::Request{
                  .options = options_,
                  .journal = journal_->id,
                  .table = oid,
                  .known = table.dataset ? std::optional(*table.dataset) : std::nullopt});
}

bool MirrorStream::MayRead() const {
  return std::ranges::count_if(tables_, [](const auto& each) {
           return each.second->sync != nullptr && !each.second->sync->ended();
         }) < kSyncsMost;
}

// A reading that failed begins again later, in a drain with the next one; what waits for it goes on
// waiting. A new table is left out for a while: nothing depends on it.
void MirrorStream::MindFailedSyncs() {
  for (auto it = tables_.begin(); it != tables_.end();) {
    const auto here = it++;
    Table& table = *here->second;
    if (IsAwaited(table) && !table.sync && table.again.passed() && MayRead()) {
      StartSync(here->first, table, "");
    }
    const auto failure = table.sync ? table.sync->failure() : nullptr;
    if (failure == nullptr) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      if (draining_ && !options_.isolate_failed_tables) throw;
      NoteFailedSync(here, error);
    }
  }
}

void MirrorStream::NoteFailedSync(Tables::iterator at, const Error& error) {
  Table& table = *at->second;
  const auto& name = table.dataset ? table.dataset->name : table.name;
  spdlog::warn("reading {} failed: {}", name.Display(), error.Full());
  Complaint complaint = ComplaintOf(error);
  complaint.table = name.schema + "." + name.name;
  if (!table.dataset) {
    left_out_.insert_or_assign(at->first,
                               LeftOut{table.state, complaint, Deadline::After(kAgainAfter * 6)});
    tables_.erase(at);
    return;
  }
  Side().Execute(
      "UPDATE tidemark.resync SET sqlstate = $2, error = $3 WHERE dataset = $1 "
      "AND ended_at IS NULL",
      {std::to_string(table.dataset->id), error.state().str(), error.message()});
  table.failure = std::move(complaint);
  table.sync.reset();
  table.again = Deadline::After(error.IsTransient() ? kAgainSoon : kAgainAfter);
}

bool MirrorStream::IsAwaited(const Table& table) const {
  return table.waiting != nullptr && !(draining_ && table.failure);
}

bool MirrorStream::AnyWaiting() const {
  return std::ranges::any_of(tables_, [&](const auto& each) { return IsAwaited(*each.second); });
}

// The position up to which everything has been received; between transactions.
Lsn MirrorStream::ReceivedEnd() const {
  return std::max({received_, newest_received_, stored_});
}

bool MirrorStream::IsReady(const Table& table) const {
  return table.waiting && table.sync && table.sync->ended() && table.sync->failure() == nullptr &&
         table.sync->copied().consistent_point <= ReceivedEnd();
}

// A tx that no commit of the source stands behind, at the position up to which all has been
// received.
void MirrorStream::AddOwnCommit() {
  last_source_time_ = SourceTimeOf(last_source_time_);
  commits_.push_back({.tx = tx_,
                      .end_lsn = ReceivedEnd(),
                      .xid = 0,
                      .source_time = last_source_time_,
                      .commit_time = std::nullopt,
                      .origin = ""});
  ++tx_;
}

void MirrorStream::FinishSyncs() {
  MindFailedSyncs();
  std::vector<Table*> ready;
  bool others = false;
  for (auto& [oid, table] : tables_) {
    if (IsReady(*table) && !WaitsForFamily(*table)) {
      ready.push_back(table.get());
    } else if (IsAwaited(*table)) {
      others = true;
    }
  }
  if (ready.empty() || (together_ && others)) return;
  if (!draining_ && !commits_.empty()) PublishPending();
  if (commits_.empty()) extracted_from_ = ready.front()->sync->copied().extracted_from;
  OpenStoreTransaction();
  capture_ = ready.front()->sync->copied().capture;  // the basis bears one of them
  std::erase_if(ready, [&](Table* table) { return !TryReplace(*table); });
  if (ready.empty()) {
    capture_.reset();
    if (!draining_) open_.reset();
    return;
  }
  JoinFamilies();
  AddOwnCommit();
  bool any = false;
  for (Table* table : ready) any = Replay(*table) || any;
  if (any) AddOwnCommit();
  together_ = false;
  base::KillPoint("sync.applied");
  if (draining_) return;
  PublishPending();
  newest_sync_ = Deadline::Clock::now();
}

// Brings the dataset to the shape. Where its key cannot keep its values, all rows end at tx_ first,
// and how many there were is returned: those of the source then begin under keys of their own.
int64_t MirrorStream::Reshape(Dataset& dataset, temporal::NumberedShape shape) {
  const Dataset before = dataset;
  Store().Execute("SAVEPOINT tidemark_reshape");
  try {
    temporal::FollowNumbers(Store(), dataset, shape, tx_);
    Store().Execute("RELEASE SAVEPOINT tidemark_reshape");
    return 0;
  } catch (const Error& error) {
    // Not unique, or NULL, under a new key.
    const bool by_values = error.state().error_class() == "23";
    if (!by_values && error.state() != base::kDatatypeMismatch) throw;
    Store().Execute("ROLLBACK TO SAVEPOINT tidemark_reshape");
  }
  dataset = before;
  const int64_t closed = Writer().Truncate(dataset, tx_);
  shape.replaces_keys = true;
  temporal::FollowNumbers(Store(), dataset, shape, tx_);
  return closed;
}

// False when the store refuses what was read: the others go on.
bool MirrorStream::TryReplace(Table& table) {
  Store().Execute("SAVEPOINT tidemark_replace");
  try {
    Replace(table);
    Store().Execute("RELEASE SAVEPOINT tidemark_replace");
    return true;
  } catch (const Error& error) {
    const bool as_one = (draining_ || together_) && !options_.isolate_failed_tables;
    if (as_one || error.IsTransient() || !Store().IsOpen()) throw;
    Store().Execute("ROLLBACK TO SAVEPOINT tidemark_replace");
    const auto at = std::ranges::find_if(
        tables_, [&](const auto& each) { return each.second.get() == &table; });
    NoteFailedSync(at, error);
    return false;
  }
}

// At tx_: as the snapshot has it.
void MirrorStream::Replace(Table& table) {
  const TableSync::Copied& copied = table.sync->copied();
  auto types = std::make_shared<const temporal::TypeMap>(copied.types);
  temporal::TransitionSummary summary;
  Dataset dataset = copied.dataset;
  if (!table.dataset) {
    temporal::Attach(Store(), dataset, copied.relation, tx_);
    dataset.attached = true;
    dataset.tx_first = tx_;
    for (auto& column : dataset.columns) column.source_number = column.number;
    summary.puts = summary.rows_added = copied.rows;
    spdlog::info("table {} is mirrored now: {} rows", dataset.name.Display(), copied.rows);
  } else {
    const Dataset& now = copied.dataset;
    dataset = *table.dataset;
    if (dataset.keying != now.keying) {
      temporal::SetKeying(Store(), dataset, now.keying, tx_);
    }
    temporal::NumberedShape shape{.columns = now.columns,
                                  .key = now.key_columns,
                                  .nullable = {},
                                  .missing = {},
                                  .complete = true};
    for (const auto& column : copied.relation.columns) {
      if (!column.not_null) shape.nullable.push_back(column.name);
    }
    if (dataset.source_oid != now.source_oid) temporal::MatchByName(dataset, shape);
    const int64_t closed = Reshape(dataset, shape);
    table.deletions += closed;
    table.rows_added -= closed;
    const int64_t live = closed > 0 ? 0 : LiveRows(Store(), dataset.id);
    Writer().Forget(dataset);
    Writer().RestorePlanner();
    temporal::Reduction reduction(Store(), dataset, *copied.stage);
    summary = reduction.Reduce(live, /*complete=*/true);
    reduction.Apply(tx_);
    Writer().PreparePlanner();
    Writer().CountHistory(dataset, summary.to_history);
    copied.stage->Drop(Store());
    for (auto& column : dataset.columns) {
      const auto one = std::ranges::find(now.columns, column.name, &temporal::DatasetColumn::name);
      column.source_number = one->source_number;
      temporal::StoreSourceNumber(Store(), dataset, column);
    }
    dataset.source_oid = now.source_oid;
    dataset.row_filter = now.row_filter;
    dataset.source_state = now.source_state;
    temporal::StoreSource(Store(), dataset);
    Store().Execute(
        R"sql(
UPDATE tidemark.resync SET ended_at = pg_catalog.clock_timestamp(), capture = $2, puts = $3,
                           deletions = $4, sqlstate = NULL, error = NULL
WHERE dataset = $1 AND ended_at IS NULL
)sql",
        {std::to_string(dataset.id), std::to_string(*capture_), std::to_string(summary.puts),
         std::to_string(summary.deletions)});
    spdlog::info("{} has been read whole again: {} rows put, {} deleted", dataset.name.Display(),
                 summary.puts, summary.deletions);
  }
  table.puts += summary.puts;
  table.deletions += summary.deletions;
  table.rows_added += summary.rows_added;
  table.changed = true;
  table.failure.reset();
  EndCapture(Store(), copied.capture, "published", "");
  table.truncated_by.clear();
  table.not_null.reset();
  table.Keep(std::move(dataset), std::move(types));
}

// At tx_: what the stream has brought since the snapshot. Whether there was anything.
bool MirrorStream::Replay(Table& table) {
  const Lsn snapshot = table.sync->copied().consistent_point;
  const auto oid = table.dataset->source_oid;
  const auto waiting = std::move(table.waiting);
  table.published = std::move(table.sync);
  in_transaction_ = true;
  bool any = false;
  while (const auto message = waiting->Read()) {
    const auto decoded = decoder_.Decode(message->payload);
    const bool relation = std::holds_alternative<pgoutput::Relation>(decoded);
    if (message->commit_lsn < snapshot) {
      table.announced = table.announced || relation;  // the shape that the snapshot has
      continue;
    }
    begin_.commit_lsn = message->commit_lsn;
    begin_.xid = message->xid;
    if (std::holds_alternative<pgoutput::Truncate>(decoded)) {
      Truncate(oid);
    } else {
      OnMessage(message->payload);
    }
    any = any || !relation;
  }
  in_transaction_ = false;
  return any;
}

}  // namespace tidemark::capture
