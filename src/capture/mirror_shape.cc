// The part of mirror_stream.h that follows columns, keys and names.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/column_match.h"
#include "capture/mirrored_table.h"
#include "temporal/reshape.h"

namespace tidemark::capture {

using base::Error;
using temporal::Dataset;
namespace pgoutput = wire::pgoutput;

namespace {

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
// from its first change on.
void MirrorStream::BeginAgainFor(Table& table, const std::string& reason) {
  Side().Execute("SELECT tidemark.request_resync($1, $2)",
                 {std::to_string(table.dataset->id), reason});
  throw Error(base::kSerializationFailure,
              fmt::format("{} is to be read whole again: {}", table.dataset->name.Display(), reason));
}

void MirrorStream::FollowShape(Table& table, const pgoutput::Relation& relation) {
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
  std::vector<pg::Oid> oids;
  for (const auto& column : relation.columns) {
    message.push_back({std::string(column.name), column.type});
    oids.push_back(column.type);
  }
  const auto numbers = MatchColumns(message, known, present);
  const auto type_names = TypeNames(Source(), relation);
  // On a line of its own: a new label of an enum can be used only after its commit.
  auto types = std::make_shared<temporal::TypeMap>(
      temporal::EnsureTypes(Side(), pg::LoadTypes(Source(), oids)));
  temporal::NumberedShape now{.columns = {}, .key = {}, .nullable = {}, .missing = catalog.missing};
  std::vector<std::string> announced_key;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& column = relation.columns[i];
    now.columns.push_back({.number = 0,
                           .source_number = numbers[i],
                           .name = message[i].name,
                           .source_type = column.type,
                           .type_modifier = column.type_modifier,
                           .type_sql = types->StoreSql(column.type, type_names[i]),
                           .binary = types->At(column.type).binary});
    const auto there = std::ranges::find(catalog.columns, numbers[i], &source::TableColumn::number);
    if (there == catalog.columns.end() || there->name.empty() || !there->not_null) {
      now.nullable.push_back(message[i].name);
    }
    if (column.key) announced_key.push_back(message[i].name);
    const auto before = std::ranges::find(known, numbers[i], &KnownColumn::number);
    if (before != known.end() && before->type != column.type) {
      BeginAgainFor(table, fmt::format("column \"{}\" has another type", message[i].name));
    }
  }
  if (dataset.keying == temporal::Keying::kKey) {
    now.key = KeyNow(dataset, now, announced_key, relation.identity);
  }
  ApplyTable(table);
  OpenStoreTransaction();
  Dataset changed = dataset;
  try {
    temporal::FollowNumbers(*store_, changed, now, tx_);
  } catch (const Error& error) {
    if (error.IsTransient() || error.state().error_class() == "2B") throw;
    BeginAgainFor(table, error.message());
  }
  applier_.Forget(changed);
  table.Keep(std::move(changed), std::move(types));
  spdlog::info("the columns or the key of {} have changed at the source: followed",
               table.dataset->name.Display());
  base::KillPoint("shape.followed");
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

// Names are the catalog's, not the stream's: they may be swapped, and every table has one at any time.
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
  if (!open_ && !draining_ && !in_transaction_) own.emplace(*store_);
  if (!own) OpenStoreTransaction();
  for (auto& [table, name] : renamed) {
    temporal::Rename(*store_, *table->dataset,
                     {name.schema, fmt::format("_renamed_{}", table->dataset->id)});
  }
  for (auto& [table, name] : renamed) {
    spdlog::info("table {} is called {} now", table->dataset->source_oid, name.Display());
    temporal::Rename(*store_, *table->dataset, name);
  }
  if (own) std::move(*own).Commit();
}

}  // namespace tidemark::capture
