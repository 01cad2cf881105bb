#include "temporal/reshape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "temporal/plane.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;

namespace {

std::string QuotedList(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + QuoteIdentifier(name);
  return list;
}

const DatasetColumn* FindByName(const std::vector<DatasetColumn>& columns,
                                const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const DatasetColumn& c) { return c.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Reshape::Reshape(pg::Connection& store, Dataset& dataset, int64_t tx)
    : store_(&store), dataset_(&dataset), tx_(std::to_string(tx)) {}

void Reshape::Begin() {
  if (changed_) return;
  changed_ = true;
  const Dataset& d = *dataset_;
  store_->Execute(fmt::format("LOCK TABLE ONLY {}, {}, {} IN ACCESS EXCLUSIVE MODE",
                              d.name.Quoted(), d.Current(), d.History()));
  DropReading(*store_, d);
  // A partition that is being sealed has the old shape: that begins again.
  const auto rewritten = store_->Execute(
      "UPDATE tidemark.history_partition SET rewritten_by = NULL "
      "WHERE dataset = $1 AND rewritten_by IS NOT NULL RETURNING number",
      {std::to_string(d.id)});
  for (int i = 0; i < rewritten.rows(); ++i) {
    store_->Execute(
        fmt::format("DROP TABLE IF EXISTS {}_p{}_sealed", d.History(), rewritten.str(i, 0)));
  }
}

DatasetColumn& Reshape::Find(const std::string& name) {
  for (auto& column : dataset_->columns) {
    if (column.name == name) return column;
  }
  throw Error(base::kUndefinedColumn, fmt::format("column \"{}\" of {} does not exist", name,
                                                  dataset_->name.Display()));
}

void Reshape::OpenRow(const DatasetColumn& column, int position) {
  store_->Execute(
      R"sql(
INSERT INTO tidemark.dataset_column (dataset, number, tx_from, name, position, type_sql,
                                     source_type, type_modifier, key_position, source_number,
                                     null_before)
VALUES ($1, $2, $3, $4, $5, $6, $7::oid, $8, pg_catalog.array_position($9::text[], $4),
        nullif($10::integer, 0), nullif($11::bigint, 0))
)sql",
      {std::to_string(dataset_->id), std::to_string(column.number), tx_, column.name,
       std::to_string(position), column.type_sql, std::to_string(column.source_type),
       std::to_string(column.type_modifier), TextArray(dataset_->key_columns),
       std::to_string(column.source_number), std::to_string(column.null_before)});
}

// Ends the column's row at this tx and returns its position; a row that began at it is removed.
int Reshape::CloseRow(const DatasetColumn& column) {
  const auto dataset = std::to_string(dataset_->id);
  const auto number = std::to_string(column.number);
  const int position = std::stoi(store_->Value(
      "SELECT position FROM tidemark.dataset_column WHERE dataset = $1 AND number = $2 "
      "AND tx_to IS NULL",
      {dataset, number}));
  store_->Execute(
      "DELETE FROM tidemark.dataset_column WHERE dataset = $1 AND number = $2 AND tx_from = $3",
      {dataset, number, tx_});
  store_->Execute(
      "UPDATE tidemark.dataset_column SET tx_to = $3 WHERE dataset = $1 AND number = $2 "
      "AND tx_to IS NULL",
      {dataset, number, tx_});
  return position;
}

void Reshape::Add(DatasetColumn column, const std::optional<std::string>& missing_value) {
  Begin();
  const Dataset& d = *dataset_;
  const auto next = store_->Execute(
      "SELECT coalesce(max(number), 0) + 1, coalesce(max(position), 0) + 1 "
      "FROM tidemark.dataset_column WHERE dataset = $1",
      {std::to_string(d.id)});
  if (column.number == 0) column.number = static_cast<int>(next.int64(0, 0));
  const std::string name = QuoteIdentifier(column.name);
  // The parent's child, the current table, too. What is history had no such column.
  const std::string parent = d.name.Quoted();
  store_->Execute(fmt::format("ALTER TABLE {} ADD COLUMN {} {}", d.History(), name, column.type_sql));
  store_->Execute(fmt::format("ALTER TABLE {} ADD COLUMN {} {}{}", parent, name, column.type_sql,
                              missing_value ? " DEFAULT " + *missing_value : ""));
  if (missing_value) {
    store_->Execute(fmt::format("ALTER TABLE {} ALTER COLUMN {} DROP DEFAULT", parent, name));
    column.null_before = std::stoll(tx_);
  }
  OpenRow(column, static_cast<int>(next.int64(0, 1)));
  dataset_->columns.push_back(std::move(column));
}

void Reshape::Drop(const std::string& name) {
  Begin();
  Dataset& d = *dataset_;
  DatasetColumn column = Find(name);
  if (Contains(d.key_columns, name)) {
    throw Error(base::kInvalidColumnReference,
                fmt::format("column \"{}\" is part of the key of {}", name, d.name.Display()));
  }
  const std::string quoted = QuoteIdentifier(name);
  const std::string retired = QuoteIdentifier(RetiredName(column.number));
  // Not along the inheritance, whose NOT NULL constraints PostgreSQL 18 does not let go.
  const std::string parent = d.name.Quoted();
  store_->Execute(fmt::format("ALTER TABLE {} NO INHERIT {}", d.Current(), parent));
  store_->Execute(fmt::format("ALTER TABLE {} DROP COLUMN {}", parent, quoted));
  store_->Execute(fmt::format("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL", d.Current(), quoted));
  store_->Execute(
      fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {}", d.Current(), quoted, retired));
  store_->Execute(fmt::format("ALTER TABLE {} INHERIT {}", d.Current(), parent));
  store_->Execute(
      fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {}", d.History(), quoted, retired));
  CloseRow(column);
  const auto kept = store_->Execute(
      "SELECT FROM tidemark.dataset_column WHERE dataset = $1 AND number = $2",
      {std::to_string(d.id), std::to_string(column.number)});
  if (kept.rows() == 0) {  // no row version was ever written with it
    store_->Execute(fmt::format("ALTER TABLE {} DROP COLUMN {}", d.Current(), retired));
    store_->Execute(fmt::format("ALTER TABLE {} DROP COLUMN {}", d.History(), retired));
  } else {
    d.retired.push_back(column);
  }
  std::erase_if(d.columns, [&](const DatasetColumn& c) { return c.name == name; });
}

void Reshape::Rename(const std::string& from, const std::string& to) {
  Begin();
  Dataset& d = *dataset_;
  DatasetColumn& column = Find(from);
  for (const auto& relation : {d.name.Quoted(), d.History()}) {
    store_->Execute(fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {}", relation,
                                QuoteIdentifier(from), QuoteIdentifier(to)));
  }
  const int position = CloseRow(column);
  column.name = to;
  std::replace(d.key_columns.begin(), d.key_columns.end(), from, to);
  store_->Execute("UPDATE tidemark.dataset SET key_columns = $2::text[] WHERE id = $1",
                  {std::to_string(d.id), TextArray(d.key_columns)});
  OpenRow(column, position);
}

// Whether every value casts to the new type and back to the same image.
bool Reshape::Lossless(const std::string& relation, const std::string& column,
                       const std::string& from, const std::string& to) {
  store_->Execute("SAVEPOINT tidemark_retype");
  try {
    const auto differs = store_->Execute(fmt::format(
        "SELECT EXISTS (SELECT FROM {0} WHERE ROW({1})::record *<> "
        "ROW({1}::{3}::{2})::record)",
        relation, column, from, to));
    store_->Execute("RELEASE SAVEPOINT tidemark_retype");
    return !differs.boolean(0, 0);
  } catch (const Error& error) {
    if (error.IsTransient()) throw;
    store_->Execute("ROLLBACK TO SAVEPOINT tidemark_retype");
    return false;  // no such cast, or a value that it refuses
  }
}

bool Reshape::Retype(const std::string& name, const DatasetColumn& as) {
  Begin();
  Dataset& d = *dataset_;
  DatasetColumn& column = Find(name);
  const std::string quoted = QuoteIdentifier(name);
  if (Lossless(d.Current(), quoted, column.type_sql, as.type_sql) &&
      Lossless(d.History(), quoted, column.type_sql, as.type_sql)) {
    // Each for itself: along an inheritance PostgreSQL 18 makes NOT NULL constraints anew under names
    // that the child has otherwise.
    const std::string parent = d.name.Quoted();
    store_->Execute(fmt::format("ALTER TABLE {} NO INHERIT {}", d.Current(), parent));
    for (const auto& relation : {parent, d.Current(), d.History()}) {
      store_->Execute(fmt::format("ALTER TABLE {0} ALTER COLUMN {1} TYPE {2} USING {1}::{2}",
                                  relation, quoted, as.type_sql));
    }
    store_->Execute(fmt::format("ALTER TABLE {} INHERIT {}", d.Current(), parent));
    const int position = CloseRow(column);
    column.source_type = as.source_type;
    column.type_modifier = as.type_modifier;
    column.type_sql = as.type_sql;
    column.binary = as.binary;
    OpenRow(column, position);
    return true;
  }
  if (Contains(d.key_columns, name) && replaces_keys_) {
    const auto key = d.key_columns;
    DropKey();
    d.key_columns.clear();
    Replace(name, as);
    d.key_columns = key;
    SetKey(key);
    return false;
  }
  if (Contains(d.key_columns, name)) {
    throw Error(base::kDatatypeMismatch,
                fmt::format("key column \"{}\" of {} cannot change its type from {} to {}", name,
                            d.name.Display(), column.type_sql, as.type_sql))
        .Detail("Not every value that is kept has the same meaning in the new type.")
        .Hint("Declare the relation as a new dataset.");
  }
  Replace(name, as);
  return false;
}

// A new column in the place of one that is dropped: the source's rows keep their order of values.
void Reshape::Replace(const std::string& name, const DatasetColumn& as) {
  Dataset& d = *dataset_;
  const auto place = std::ranges::find(d.columns, name, &DatasetColumn::name) - d.columns.begin();
  const auto position = store_->Value(
      "SELECT position FROM tidemark.dataset_column WHERE dataset = $1 AND number = $2 "
      "AND tx_to IS NULL",
      {std::to_string(d.id), std::to_string(d.columns[static_cast<size_t>(place)].number)});
  DatasetColumn added = as;
  added.name = name;
  added.number = 0;
  Drop(name);
  Add(std::move(added));
  std::rotate(d.columns.begin() + place, d.columns.end() - 1, d.columns.end());
  store_->Execute(
      "UPDATE tidemark.dataset_column SET position = $3 WHERE dataset = $1 AND number = $2 "
      "AND tx_to IS NULL",
      {std::to_string(d.id), std::to_string(d.columns[static_cast<size_t>(place)].number),
       position});
}

void Reshape::DropKey() {
  Begin();
  const Dataset& d = *dataset_;
  const auto constraints = store_->Execute(
      R"sql(
SELECT c.conrelid::regclass, pg_catalog.quote_ident(c.conname)
FROM pg_catalog.pg_constraint c
WHERE c.conrelid IN ($1::regclass, $2::regclass) AND c.contype = 'p'
)sql",
      {d.name.Quoted(), d.Current()});
  for (int i = 0; i < constraints.rows(); ++i) {
    store_->Execute(fmt::format("ALTER TABLE ONLY {} DROP CONSTRAINT {}", constraints.str(i, 0),
                                constraints.str(i, 1)));
  }
  store_->Execute(fmt::format("DROP INDEX IF EXISTS tidemark_current.d{0}_key; "
                              "DROP INDEX IF EXISTS tidemark_history.d{0}_key_to",
                              d.id));
}

void Reshape::LeaveKey() {
  DropKey();
  dataset_->key_columns.clear();
  for (const auto& column : std::vector<DatasetColumn>(dataset_->columns)) {
    OpenRow(column, CloseRow(column));
  }
}

void Reshape::SetKey(const std::vector<std::string>& key) {
  DropKey();
  Dataset& d = *dataset_;
  const std::string parent = d.name.Quoted();
  const std::string columns = QuotedList(key);
  try {
    store_->Execute(fmt::format("ALTER TABLE {} ADD PRIMARY KEY ({})", d.Current(), columns));
  } catch (Error& error) {
    if (error.state().error_class() != "23") throw;
    throw Error(error.state(), fmt::format("{} cannot get the key ({}): {}", d.name.Display(),
                                           columns, error.message()))
        .Detail(error.detail())
        .Hint("Capture once more with the former key, then change it.");
  }
  store_->Execute(fmt::format("ALTER TABLE {} ADD PRIMARY KEY ({})", parent, columns));
  store_->Execute(fmt::format("CREATE INDEX d{}_key_to ON {} ({}, _to)", d.id, d.History(),
                              columns));
  d.key_columns = key;
  d.keying = Keying::kKey;
  store_->Execute(
      "UPDATE tidemark.dataset SET key_columns = $2::text[], keying = 'key' WHERE id = $1",
      {std::to_string(d.id), TextArray(key)});
  for (const auto& column : std::vector<DatasetColumn>(d.columns)) {
    OpenRow(column, CloseRow(column));
  }
}

void Reshape::AllowNulls(const std::string& name) {
  Begin();
  store_->Execute(fmt::format("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL",
                              dataset_->name.Quoted(), QuoteIdentifier(name)));
  store_->Execute(fmt::format("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL",
                              dataset_->Current(), QuoteIdentifier(name)));
}

void Reshape::Finish() {
  if (changed_) DefineReading(*store_, *dataset_);
}

std::vector<std::string> NotNullColumns(pg::Connection& store, const Dataset& dataset) {
  const auto rows = store.Execute(
      R"sql(
SELECT DISTINCT a.attname
FROM pg_catalog.pg_attribute a
WHERE a.attrelid IN ($1::regclass, $2::regclass) AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attnotnull AND a.attname <> '_from'
)sql",
      {dataset.name.Quoted(), dataset.Current()});
  std::vector<std::string> names;
  for (int i = 0; i < rows.rows(); ++i) names.push_back(rows.str(i, 0));
  return names;
}

namespace {

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
