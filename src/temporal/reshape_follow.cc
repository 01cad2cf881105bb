// The part of reshape.h that brings a dataset to the shape of its source.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "temporal/reading.h"
#include "temporal/reshape.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;

namespace {

const DatasetColumn* FindByName(const std::vector<DatasetColumn>& columns,
                                const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const DatasetColumn& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const DatasetColumn* FindByNumber(const std::vector<DatasetColumn>& columns, int number) {
  const auto found = std::ranges::find(columns, number, &DatasetColumn::source_number);
  return found == columns.end() ? nullptr : &*found;
}

// Names may be swapped and given to others: whatever loses its name gets one of ours first.
void FollowNames(Reshape& reshape, const Dataset& dataset, const NumberedShape& now) {
  const std::vector<DatasetColumn> before = dataset.columns;
  const auto between = [](int number) { return fmt::format("_renamed_{}", number); };
  std::vector<DatasetColumn> renamed;
  for (const auto& column : before) {
    const DatasetColumn* one = FindByNumber(now.columns, column.source_number);
    const bool in_key = Contains(dataset.key_columns, column.name);
    if (one == nullptr ? in_key : one->name != column.name) renamed.push_back(column);
    if (one == nullptr && !in_key) reshape.Drop(column.name);
  }
  const bool direct = std::ranges::none_of(renamed, [&](const DatasetColumn& column) {
    const DatasetColumn* one = FindByNumber(now.columns, column.source_number);
    return one == nullptr || FindByName(dataset.columns, one->name) != nullptr;
  });
  for (const auto& column : renamed) {
    const DatasetColumn* one = FindByNumber(now.columns, column.source_number);
    reshape.Rename(column.name, direct ? one->name : between(column.number));
  }
  if (direct) return;
  for (const auto& column : renamed) {
    const DatasetColumn* one = FindByNumber(now.columns, column.source_number);
    if (one != nullptr) reshape.Rename(between(column.number), one->name);
  }
}

}  // namespace

bool FollowNumbers(pg::Connection& store, Dataset& dataset, const NumberedShape& now, int64_t tx) {
  Reshape reshape(store, dataset, tx);
  if (now.replaces_keys) reshape.ReplaceKeys();
  FollowNames(reshape, dataset, now);
  const std::vector<DatasetColumn> before = dataset.columns;
  for (const auto& column : now.columns) {
    const DatasetColumn* known = FindByNumber(before, column.source_number);
    if (known == nullptr) {
      const auto missing = now.missing.find(column.source_number);
      DatasetColumn added = column;
      added.number = 0;
      reshape.Add(std::move(added), missing == now.missing.end() ? std::nullopt
                                                       : std::optional(missing->second));
    } else if (known->type_sql != column.type_sql && !reshape.Retype(column.name, column) &&
               !now.complete) {
      throw Error(base::kDatatypeMismatch,
                  fmt::format("column \"{}\" of {} cannot change its type from {} to {}",
                              column.name, dataset.name.Display(), known->type_sql,
                              column.type_sql))
          .Detail("Not every value that is kept has the same meaning in the new type.");
    }
  }
  if (!now.key.empty() && now.key != dataset.key_columns) reshape.SetKey(now.key);
  for (const auto& column : before) {
    if (FindByNumber(now.columns, column.source_number) == nullptr) reshape.Drop(column.name);
  }
  const auto strict = NotNullColumns(store, dataset);
  for (const auto& name : now.nullable) {
    if (Contains(strict, name) && !Contains(now.key, name)) reshape.AllowNulls(name);
  }
  for (auto& column : dataset.columns) {
    if (const DatasetColumn* one = FindByName(now.columns, column.name)) {
      column.binary = one->binary;
      column.source_type = one->source_type;
      column.type_modifier = one->type_modifier;
    }
  }
  reshape.Finish();
  return reshape.changed();
}

void MatchByName(Dataset& dataset, const NumberedShape& now) {
  int none = -1;  // below every number
  for (auto& column : dataset.columns) {
    const DatasetColumn* one = FindByName(now.columns, column.name);
    column.source_number = one == nullptr ? none-- : one->source_number;
  }
}

void SetKeying(pg::Connection& store, Dataset& dataset, Keying keying, int64_t tx) {
  const std::string current = dataset.Current();
  if (dataset.keying == Keying::kMultiset) {
    store.Execute(fmt::format("ALTER TABLE {} DROP COLUMN _hash", current));
  }
  if (keying == Keying::kMultiset) {
    store.Execute(fmt::format("ALTER TABLE {0} ADD COLUMN _hash uuid; "
                              "CREATE INDEX d{1}_hash ON {0} (_hash)",
                              current, dataset.id));
  }
  if (keying != Keying::kKey && dataset.keying == Keying::kKey) {
    Reshape reshape(store, dataset, tx);
    reshape.LeaveKey();
    reshape.Finish();
  }
  dataset.keying = keying;
  store.Execute(
      "UPDATE tidemark.dataset SET keying = $2, key_columns = $3::text[] WHERE id = $1",
      {std::to_string(dataset.id), std::string(KeyingWord(keying)), TextArray(dataset.key_columns)});
}

void Rename(pg::Connection& store, Dataset& dataset, const base::QualifiedName& name) {
  DropReading(store, dataset);
  store.Execute(fmt::format("CREATE SCHEMA IF NOT EXISTS {}", QuoteIdentifier(name.schema)));
  if (name.name != dataset.name.name) {
    store.Execute(fmt::format("ALTER TABLE {} RENAME TO {}", dataset.name.Quoted(),
                              QuoteIdentifier(name.name)));
  }
  if (name.schema != dataset.name.schema) {
    store.Execute(fmt::format("ALTER TABLE {} SET SCHEMA {}",
                              base::QualifiedName{dataset.name.schema, name.name}.Quoted(),
                              QuoteIdentifier(name.schema)));
  }
  dataset.name = name;
  store.Execute("UPDATE tidemark.dataset SET schema_name = $2, table_name = $3 WHERE id = $1",
                {std::to_string(dataset.id), name.schema, name.name});
  DefineReading(store, dataset);
  GrantReading(store, dataset);
}

bool FollowShape(pg::Connection& store, Dataset& dataset, const SourceShape& now, int64_t tx) {
  Reshape reshape(store, dataset, tx);
  const std::vector<DatasetColumn> before = dataset.columns;
  for (const auto& column : now.columns) {
    const DatasetColumn* known = FindByName(before, column.name);
    if (known == nullptr) {
      DatasetColumn added = column;
      added.number = 0;
      reshape.Add(std::move(added));
    } else if (known->type_sql != column.type_sql && !reshape.Retype(column.name, column) &&
               !now.complete) {
      throw Error(base::kDatatypeMismatch,
                  fmt::format("column \"{}\" of {} cannot change its type from {} to {}",
                              column.name, dataset.name.Display(), known->type_sql,
                              column.type_sql))
          .Detail("Not every value that is kept has the same meaning in the new type.")
          .Hint("Capture the relation as a snapshot, or declare it as a new dataset.");
    }
  }
  if (now.key != dataset.key_columns) reshape.SetKey(now.key);
  for (const auto& column : before) {
    if (FindByName(now.columns, column.name) == nullptr) reshape.Drop(column.name);
  }
  const auto strict = NotNullColumns(store, dataset);
  for (const auto& name : now.nullable) {
    if (Contains(strict, name) && !Contains(now.key, name)) reshape.AllowNulls(name);
  }
  for (auto& column : dataset.columns) {
    if (const DatasetColumn* one = FindByName(now.columns, column.name)) {
      column.binary = one->binary;
    }
  }
  reshape.Finish();
  return reshape.changed();
}

}  // namespace tidemark::temporal
