#include "temporal/reshape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "temporal/history.h"
#include "temporal/inheritance.h"
#include "temporal/reading.h"
#include "temporal/sealing.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using base::QuoteIdentifiers;

namespace {

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
  // A partition that is being sealed has the old shape: that begins again.
  DiscardRewritten(*store_, d);
  linked_ = TakeOffLinks(*store_, d.id);
  store_->Execute(fmt::format("LOCK TABLE ONLY {}, ONLY {}, {}, {} IN ACCESS EXCLUSIVE MODE",
                              d.name.Quoted(), d.Versions(), d.Current(), d.History()));
  DropReading(*store_, d);
  store_->Execute(fmt::format("ALTER TABLE {1} NO INHERIT {0}; ALTER TABLE {2} NO INHERIT {0}",
                              d.Versions(), d.Current(), d.History()));
}

void Reshape::AlterKept(const std::string& what) {
  for (const auto& relation : {dataset_->Versions(), dataset_->History()}) {
    store_->Execute(fmt::format("ALTER TABLE {} {}", relation, what));
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
  AlterKept(fmt::format("ADD COLUMN {} {}", name, column.type_sql));
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
  AlterKept(fmt::format("RENAME COLUMN {} TO {}", quoted, retired));
  CloseRow(column);
  const auto kept = store_->Execute(
      "SELECT FROM tidemark.dataset_column WHERE dataset = $1 AND number = $2",
      {std::to_string(d.id), std::to_string(column.number)});
  if (kept.rows() == 0) {  // no row version was ever written with it
    store_->Execute(fmt::format("ALTER TABLE {} DROP COLUMN {}", d.Current(), retired));
    AlterKept(fmt::format("DROP COLUMN {}", retired));
  } else {
    d.retired.push_back(column);
  }
  std::erase_if(d.columns, [&](const DatasetColumn& c) { return c.name == name; });
}

void Reshape::Rename(const std::string& from, const std::string& to) {
  Begin();
  Dataset& d = *dataset_;
  DatasetColumn& column = Find(from);
  for (const auto& relation : {d.name.Quoted(), d.Versions(), d.History()}) {
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
    // Each for itself: along an inheritance PostgreSQL 18 makes NOT NULL constraints anew under
    // names that the child has otherwise.
    const std::string parent = d.name.Quoted();
    store_->Execute(fmt::format("ALTER TABLE {} NO INHERIT {}", d.Current(), parent));
    for (const auto& relation : {parent, d.Versions(), d.Current(), d.History()}) {
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
  store_->Execute(fmt::format("DROP INDEX IF EXISTS tidemark_current.d{}_key", d.id));
  const auto indexes = store_->Execute(
      R"sql(
SELECT x.indexrelid::regclass
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_index x ON x.indrelid = i.inhrelid
JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid
JOIN pg_catalog.pg_am m ON m.oid = c.relam
WHERE i.inhparent = $1::regclass AND m.amname = 'btree'
)sql",
      {d.History()});
  for (int i = 0; i < indexes.rows(); ++i) store_->Execute("DROP INDEX " + indexes.str(i, 0));
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
  const std::string columns = QuoteIdentifiers(key);
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
  const auto partitions = store_->Execute(
      "SELECT i.inhrelid::regclass FROM pg_catalog.pg_inherits i WHERE i.inhparent = $1::regclass",
      {d.History()});
  for (int i = 0; i < partitions.rows(); ++i) {
    store_->Execute(KeyIndexSql(partitions.str(i, 0), key));
  }
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
  if (!changed_) return;
  store_->Execute(fmt::format("ALTER TABLE {1} INHERIT {0}; ALTER TABLE {2} INHERIT {0}",
                              dataset_->Versions(), dataset_->Current(), dataset_->History()));
  DefineReading(*store_, *dataset_);
  DefineReadingThroughParents(*store_, *dataset_);
  // Those that do not fit by now do once the other table has been reshaped, too.
  if (linked_) PutOnLinks(*store_, dataset_->journal, dataset_->id);
}

std::vector<std::string> NotNullColumns(pg::Connection& store, const Dataset& dataset) {
  const auto rows = store.Execute(
      R"sql(
SELECT DISTINCT a.attname
FROM pg_catalog.pg_attribute a
WHERE a.attrelid IN ($1::regclass, $2::regclass) AND a.attnum > 0 AND NOT a.attisdropped
  AND a.attnotnull AND a.attname NOT IN ('_from', '_to')
)sql",
      {dataset.name.Quoted(), dataset.Current()});
  std::vector<std::string> names;
  for (int i = 0; i < rows.rows(); ++i) names.push_back(rows.str(i, 0));
  return names;
}

}  // namespace tidemark::temporal
