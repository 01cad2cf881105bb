// The part of mirror_stream.h that follows columns, keys and names.
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/column_match.h"
#include "capture/mirrored_table.h"
#include "source/postgres/read_position.h"
#include "temporal/nullability.h"
#include "temporal/reshape.h"

namespace tidemark::capture {

using base::Error;
using temporal::Dataset;
namespace pgoutput = wire::pgoutput;

namespace {

constexpr std::chrono::seconds kSeenSoon{1};

// What pg_catalog.format_type says of each column of the message.
std::vector<std::string> TypeNames(pg::Connection& source, const pgoutput::Relation& relation) {
  std::vector<std::string> names;
  for (const auto& column : relation.columns) {
    names.push_back(source.Value("SELECT pg_catalog.format_type($1::oid, $2::integer)",
                                 {std::to_string(column.type),
                                  std::to_string(column.type_modifier)}));
  }
  return names;
}

}  // namespace

// In the middle of a transaction: it begins again from the newest publish, and then the table waits
// from its first change on. Commits before it that are not published would wait, too, and become
// one step in the table's history: so they are published first, by a run of their own.
void MirrorStream::BeginAgainFor(Table& table, const std::string& reason) {
  const bool of_the_source = !commits_.empty() && commits_.back().xid != 0;  // not by FinishSyncs
  if (of_the_source && !draining_) {
    publish_first_ = begin_.commit_lsn;
    throw Error(base::kSerializationFailure,
                fmt::format("{} is to be read whole again once what came before is published: {}",
                            table.dataset->name.Display(), reason));
  }
  Side().Execute("SELECT tidemark.request_resync($1, $2)",
                 {std::to_string(table.dataset->id), reason});
  throw Error(base::kSerializationFailure,
              fmt::format("{} is to be read whole again: {}", table.dataset->name.Display(), reason));
}

// A commit is sent before others see it, most often by no more than a moment. What the catalog says
// until then would make the table be read whole.
void MirrorStream::AwaitSeen() {
  const auto deadline = base::Deadline::After(kSeenSoon);
  const auto sees = [&] {
    const source::SeenColumns now{
        .snapshot = Source().Value("SELECT pg_catalog.pg_current_snapshot()"),
        .columns = {},
        .published = {}};
    return now.Includes(begin_.xid);
  };
  while (!sees() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void MirrorStream::FollowShape(Table& table, const pgoutput::Relation& relation) {
  AwaitSeen();
  const Dataset& dataset = *table.dataset;
  const auto catalog = source::LoadTableColumns(Source(), relation.oid);
  for (const auto& state : source::LoadTableStates(Source(), journal_->publication)) {
    if (state.oid != relation.oid) continue;
    if (source::CompareStates(dataset.source_state, state, table.truncated_by) ==
        source::StateChange::kRows) {
      BeginAgainFor(table, "its rows were rewritten along with its columns");
    }
  }
  std::vector<KnownColumn> known;
  for (const auto& column : dataset.columns) {
    known.push_back({column.source_number, column.name, column.source_type});
  }
  std::ranges::sort(known, {}, &KnownColumn::number);
  std::vector<CatalogColumn> present;
  for (const auto& column : catalog.columns) {
    const bool listed = std::ranges::any_of(
        known, [&](const KnownColumn& k) { return k.number == column.number; });
    const bool newer = known.empty() || column.number > known.back().number;
    // One that is older and not known is not published.
    if (listed || newer) present.push_back({column.number, column.name, column.type});
  }
  std::vector<MessageColumn> message;
  for (const auto& column : relation.columns) {
    message.push_back({std::string(column.name), column.type});
  }
  std::vector<int> numbers;
  try {
    numbers = MatchColumns(message, known, present);
  } catch (const Error& error) {  // some came and went before anybody looked
    BeginAgainFor(table, error.message());
  }
  FollowColumns(table, relation, numbers, catalog);
}

// To the columns and the key as announced; `numbers` are the columns' at the source.
void MirrorStream::FollowColumns(Table& table, const pgoutput::Relation& announced,
                                 const std::vector<int>& numbers,
                                 const source::TableColumns& catalog) {
  const Dataset& dataset = *table.dataset;
  std::vector<pg::Oid> oids;
  for (const auto& column : announced.columns) oids.push_back(column.type);
  const auto type_names = TypeNames(Source(), announced);
  // On a line of its own: a new label of an enum can be used only after its commit.
  auto types = std::make_shared<temporal::TypeMap>(
      temporal::EnsureTypes(Side(), pg::LoadTypes(Source(), oids),
                            TypeOptionsOf(Source(), Side(), options_)));
  temporal::NumberedShape now{.columns = {}, .key = {}, .nullable = {}, .missing = catalog.missing};
  std::vector<std::string> announced_key;
  for (size_t i = 0; i < announced.columns.size(); ++i) {
    const auto& column = announced.columns[i];
    now.columns.push_back({.number = 0,
                           .source_number = numbers[i],
                           .name = std::string(column.name),
                           .source_type = column.type,
                           .type_modifier = column.type_modifier,
                           .type_sql = types->StoreSql(column.type, type_names[i]),
                           .binary = types->At(column.type).binary});
    const auto there = std::ranges::find(catalog.columns, numbers[i], &source::TableColumn::number);
    if (there == catalog.columns.end() || there->name.empty() || !there->not_null) {
      now.nullable.push_back(std::string(column.name));
    }
    if (column.key) announced_key.push_back(std::string(column.name));
    const auto before =
        std::ranges::find(dataset.columns, numbers[i], &temporal::DatasetColumn::source_number);
    if (before != dataset.columns.end() && before->source_type != column.type) {
      BeginAgainFor(table, fmt::format("column \"{}\" has another type", column.name));
    }
  }
  if (dataset.keying == temporal::Keying::kKey) {
    now.key = KeyNow(dataset, now, announced_key, announced.identity);
  }
  ApplyTable(table);
  OpenStoreTransaction();
  const Dataset before = dataset;
  Dataset changed = dataset;
  try {
    temporal::FollowNumbers(Store(), changed, now, tx_);
  } catch (const Error& error) {
    if (error.IsTransient() || error.state().error_class() == "2B") throw;
    BeginAgainFor(table, error.message());
  }
  Writer().Forget(changed);
  table.Keep(std::move(changed), std::move(types));
  table.not_null.reset();  // a new column may refuse them
  reshaped_ = true;
  spdlog::info("the columns or the key of {} have changed at the source: followed",
               table.dataset->name.Display());
  MendLinks(&table, &before);
  base::KillPoint("shape.followed");
}

// The catalog has other columns than before. A row of the new shape announces it, but may never
// come.
void MirrorStream::Look(pgoutput::RelationOid oid, Table& table, const std::string& state) {
  Table::Look look;
  look.state = state;
  look.seen = source::SeeColumns(Source(), journal_->publication, oid);
  look.to = source::CurrentEnd(Source());
  table.look = std::move(look);
}

bool MirrorStream::AnyLook() const {
  return std::ranges::any_of(tables_, [](const auto& each) { return each.second->look.has_value(); });
}

// Everything that was received is applied. What the stream has announced and was not seen is newer:
// then another look is needed.
void MirrorStream::FollowLooks() {
  for (auto& [oid, table] : tables_) {
    if (!table->look || ReceivedEnd() < table->look->to) continue;
    const auto look = *std::exchange(table->look, std::nullopt);
    if (table->waiting || !table->dataset) continue;
    if (!look.seen || (table->announced_by && !look.seen->Includes(*table->announced_by))) {
      Look(oid, *table, look.state);
      continue;
    }
    const bool followed = FollowLook(oid, *table, *look.seen);
    table->dataset->source_state = look.state;
    temporal::StoreSource(Store(), *table->dataset);
    if (!followed) continue;
    table->changed = true;
    AddOwnCommit();
    if (!draining_) PublishPending();
  }
  RetryLinks();
}

// Whether anything was to be followed.
bool MirrorStream::FollowLook(pgoutput::RelationOid oid, Table& table,
                              const source::SeenColumns& seen) {
  const Dataset& dataset = *table.dataset;
  std::vector<pgoutput::RelationColumn> columns;
  std::vector<int> numbers;
  bool differs = false;
  for (const auto& column : seen.columns.columns) {
    if (column.name.empty() || !seen.published.contains(column.name)) continue;
    const auto before =
        std::ranges::find(dataset.columns, column.number, &temporal::DatasetColumn::source_number);
    const bool known = before != dataset.columns.end();
    differs = differs || !known || before->name != column.name ||
              before->source_type != column.type || before->type_modifier != column.modifier;
    const bool key =
        known && dataset.keying == temporal::Keying::kKey &&
        std::ranges::find(dataset.key_columns, before->name) != dataset.key_columns.end();
    columns.push_back({key, column.name, column.type, column.modifier});
    numbers.push_back(column.number);
  }
  const auto keys = static_cast<size_t>(
      std::ranges::count(columns, true, &pgoutput::RelationColumn::key));
  differs = differs || columns.size() != dataset.columns.size();
  // Another identity is for the stream to tell.
  if (!differs || columns.empty() ||
      (dataset.keying == temporal::Keying::kKey && keys != dataset.key_columns.size())) {
    return false;
  }
  if (commits_.empty()) {
    extracted_from_ = base::Timestamp::FromSystem(std::chrono::system_clock::now());
  }
  FollowColumns(table,
                {.xid = 0,
                 .oid = oid,
                 .schema = dataset.name.schema,
                 .name = dataset.name.name,
                 .identity = pgoutput::ReplicaIdentity::kDefault,
                 .columns = columns},
                numbers, seen.columns);
  return true;
}

// The key by its new names. A message marks the columns of the identity, which under FULL are all.
std::vector<std::string> MirrorStream::KeyNow(const Dataset& dataset,
                                              const temporal::NumberedShape& now,
                                              const std::vector<std::string>& announced,
                                              pgoutput::ReplicaIdentity identity) {
  std::vector<std::string> same;
  for (const auto& name : dataset.key_columns) {
    const auto column = std::ranges::find(dataset.columns, name, &temporal::DatasetColumn::name);
    const auto one = std::ranges::find(now.columns, column->source_number,
                                       &temporal::DatasetColumn::source_number);
    if (one != now.columns.end()) same.push_back(one->name);
  }
  const bool whole = same.size() == dataset.key_columns.size();
  const auto marked = [&](const std::string& name) {
    return std::ranges::find(announced, name) != announced.end();
  };
  if (whole && std::ranges::all_of(same, marked) &&
      (identity == pgoutput::ReplicaIdentity::kFull || same.size() == announced.size())) {
    return same;
  }
  return announced;
}

// Names are the catalog's, not the stream's: they may be swapped, and every table has one at any
// time.
void MirrorStream::FollowNames(const std::vector<source::TableState>& states) {
  if (options_.only) return;
  std::vector<std::pair<Table*, base::QualifiedName>> renamed;
  for (const auto& state : states) {
    const auto found = tables_.find(state.oid);
    if (found == tables_.end() || !found->second->dataset) continue;
    if (found->second->dataset->name != state.name) {
      renamed.emplace_back(found->second.get(), state.name);
    }
  }
  if (renamed.empty()) return;
  std::optional<pg::Transaction> own;
  if (!open_ && !draining_ && !in_transaction_) own.emplace(Store());
  if (!own) OpenStoreTransaction();
  for (auto& [table, name] : renamed) {
    temporal::Rename(Store(), *table->dataset,
                     {name.schema, fmt::format("_renamed_{}", table->dataset->id)});
  }
  for (auto& [table, name] : renamed) {
    spdlog::info("table {} is called {} now", table->dataset->source_oid, name.Display());
    temporal::Rename(Store(), *table->dataset, name);
  }
  if (own) std::move(*own).Commit();
}

namespace {

constexpr std::chrono::seconds kNullsAgain{10}, kHeirsAgain{1};

// Names of the dataset's columns that the source refuses NULLs in, or of those that it does not.
std::vector<std::string> ColumnsBy(const Dataset& dataset, const source::TableState& state,
                                   bool not_null) {
  std::vector<std::string> names;
  for (const auto& column : dataset.columns) {
    if (state.not_null.contains(column.source_number) == not_null) names.push_back(column.name);
  }
  return names;
}

}  // namespace

// Before anything is applied: what may have NULLs by now must take them. Most tables are as they are
// at the source, and one look tells.
void MirrorStream::AllowNulls(const SourceView& view) {
  if (!open_ && !draining_) temporal::DropNullConstraints(Store());
  const auto strict = temporal::LoadNotNull(Store(), journal_->id);
  std::optional<pg::Transaction> own;
  for (const auto& state : view.tables) {
    const auto found = tables_.find(state.oid);
    if (found == tables_.end() || !found->second->dataset) continue;
    const auto& dataset = *found->second->dataset;
    const auto relations = [&](const std::string& column) {
      const auto count = strict.find({dataset.id, column});
      return count == strict.end() ? 0 : count->second;
    };
    const auto allowed = ColumnsBy(dataset, state, false);
    if (std::ranges::any_of(allowed, relations)) {
      if (!own && !open_ && !draining_) own.emplace(Store());
      temporal::AllowNulls(Store(), dataset, allowed);
    } else if (std::ranges::all_of(ColumnsBy(dataset, state, true), [&](const auto& column) {
                 return relations(column) == temporal::kNotNullRelations;
               })) {
      found->second->not_null = state.not_null;
    }
  }
  if (own) std::move(*own).Commit();
}

// Everything up to the view has been applied, and no transaction is open. A reader that is in the
// way is waited for elsewhere; a NULL that only the store has, until the source says something
// else.
void MirrorStream::FollowNulls(Table& table, const source::TableState& state) {
  if (table.not_null == state.not_null || !table.nulls_again.passed()) return;
  const auto& dataset = *table.dataset;
  try {
    {
      pg::Transaction own(Store());
      temporal::AllowNulls(Store(), dataset, ColumnsBy(dataset, state, false));
      std::move(own).Commit();
    }
    if (temporal::RefuseNulls(Store(), dataset, ColumnsBy(dataset, state, true))) {
      table.not_null = state.not_null;
    } else {
      table.nulls_again = base::Deadline::After(kHeirsAgain);
    }
  } catch (const Error& error) {
    if (!Store().IsOpen() || error.IsConnectionLoss()) throw;
    spdlog::info("NOT NULL of {} is not followed: {}", dataset.name.Display(), error.message());
    table.nulls_again = base::Deadline::After(kNullsAgain);
    if (!error.IsTransient()) table.not_null = state.not_null;
  }
}

}  // namespace tidemark::capture
