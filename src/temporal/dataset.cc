#include "temporal/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;

namespace {

Keying KeyingOf(std::string_view word) {
  return word == "key" ? Keying::kKey : word == "multiset" ? Keying::kMultiset : Keying::kAppend;
}

std::string_view StrategyWord(Strategy strategy) {
  return strategy == Strategy::kSnapshot ? "snapshot"
         : strategy == Strategy::kCursor ? "cursor"
                                         : "cdc";
}

Strategy StrategyOf(std::string_view word) {
  return word == "snapshot" ? Strategy::kSnapshot
         : word == "cursor" ? Strategy::kCursor
                            : Strategy::kCdc;
}

}  // namespace

std::string_view KeyingWord(Keying keying) {
  return keying == Keying::kKey ? "key" : keying == Keying::kMultiset ? "multiset" : "append";
}

std::string Dataset::Current() const { return fmt::format("tidemark_current.d{}", id); }
std::string Dataset::History() const { return fmt::format("tidemark_history.d{}", id); }
std::string Dataset::OpenHistory() const { return History() + "_open"; }
std::string Dataset::Versions() const { return fmt::format("tidemark_versions.d{}", id); }

std::string Dataset::ColumnList(const std::string& prefix) const {
  std::string list;
  for (const auto& column : columns) {
    if (!list.empty()) list += ", ";
    list += prefix + QuoteIdentifier(column.name);
  }
  return list;
}

std::string Dataset::StoredColumnList(const std::string& prefix) const {
  std::string list = ColumnList(prefix);
  for (const auto& column : retired) {
    if (!list.empty()) list += ", ";
    list += prefix + QuoteIdentifier(RetiredName(column.number));
  }
  return list;
}

std::string RetiredName(int number) { return fmt::format("_dropped_{}", number); }

std::string TextArray(const std::vector<std::string>& values) {
  std::string text = "{";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += '"';
    for (char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "}";
}

std::vector<size_t> Dataset::KeyPositions() const {
  std::vector<size_t> positions;
  for (const auto& key : key_columns) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == key) positions.push_back(i);
    }
  }
  return positions;
}

bool Dataset::AllBinary() const {
  return std::all_of(columns.begin(), columns.end(), [](const auto& c) { return c.binary; });
}

void StoreDataset(pg::Connection& store, Dataset& dataset) {
  dataset.id = std::stoi(store.Value(
      R"sql(
INSERT INTO tidemark.dataset (journal, schema_name, table_name, strategy, keying, key_columns,
                              source_oid, row_filter, source_state)
VALUES ($1, $2, $3, $8, $4, $5::text[], nullif($6::oid, 0), nullif($7, ''), nullif($9, ''))
RETURNING id
)sql",
      {std::to_string(dataset.journal), dataset.name.schema, dataset.name.name,
       std::string(KeyingWord(dataset.keying)), TextArray(dataset.key_columns),
       std::to_string(dataset.source_oid), dataset.row_filter,
       std::string(StrategyWord(dataset.strategy)), dataset.source_state}));
  int position = 0;
  for (const auto& column : dataset.columns) {
    store.Execute(
        R"sql(
INSERT INTO tidemark.dataset_column (dataset, number, tx_from, name, position, type_sql,
                                     source_type, type_modifier, key_position)
VALUES ($1, $2, 1, $3, $4, $5, $6::oid, $7, pg_catalog.array_position($8::text[], $3))
)sql",
        {std::to_string(dataset.id), std::to_string(column.number), column.name,
         std::to_string(++position), column.type_sql, std::to_string(column.source_type),
         std::to_string(column.type_modifier), TextArray(dataset.key_columns)});
  }
}

void StoreSource(pg::Connection& store, const Dataset& dataset) {
  store.Execute(
      "UPDATE tidemark.dataset SET source_oid = $2::oid, row_filter = nullif($3, ''), "
      "source_state = nullif($4, '') WHERE id = $1",
      {std::to_string(dataset.id), std::to_string(dataset.source_oid), dataset.row_filter,
       dataset.source_state});
}

void StoreSourceNumber(pg::Connection& store, const Dataset& dataset, const DatasetColumn& column) {
  store.Execute(
      "UPDATE tidemark.dataset_column SET source_number = $3 WHERE dataset = $1 AND number = $2 "
      "AND tx_to IS NULL AND source_number IS DISTINCT FROM $3",
      {std::to_string(dataset.id), std::to_string(column.number),
       std::to_string(column.source_number)});
}

std::vector<Dataset> LoadDatasets(pg::Connection& store, int journal) {
  const auto rows = store.Execute(
      R"sql(
SELECT d.id, d.schema_name, d.table_name, coalesce(d.source_oid, 0), d.keying,
       pg_catalog.array_to_string(d.key_columns, E'\x1f'), coalesce(d.row_filter, ''),
       d.tx_first IS NOT NULL, d.strategy, coalesce(d.source_state, ''), coalesce(d.tx_first, 0)
FROM tidemark.dataset d WHERE d.journal = $1 AND d.tx_dropped IS NULL ORDER BY d.id
)sql",
      {std::to_string(journal)});
  std::vector<Dataset> datasets;
  std::map<int, size_t> place;
  for (int i = 0; i < rows.rows(); ++i) {
    Dataset d;
    d.id = static_cast<int>(rows.int64(i, 0));
    d.journal = journal;
    d.name = {rows.str(i, 1), rows.str(i, 2)};
    d.source_oid = static_cast<pg::Oid>(rows.int64(i, 3));
    d.keying = KeyingOf(rows.text(i, 4));
    std::string keys = rows.str(i, 5);
    for (size_t from = 0; !keys.empty();) {
      const auto to = keys.find('\x1f', from);
      d.key_columns.push_back(keys.substr(from, to == std::string::npos ? to : to - from));
      if (to == std::string::npos) break;
      from = to + 1;
    }
    d.row_filter = rows.str(i, 6);
    d.attached = rows.boolean(i, 7);
    d.strategy = StrategyOf(rows.text(i, 8));
    d.source_state = rows.str(i, 9);
    d.tx_first = rows.int64(i, 10);
    place[d.id] = datasets.size();
    datasets.push_back(std::move(d));
  }
  // The newest row of each column; closed ones are retired.
  const auto columns = store.Execute(
      R"sql(
SELECT * FROM (
  SELECT DISTINCT ON (c.dataset, c.number)
         c.dataset, c.number, c.name, c.source_type, c.type_modifier, c.type_sql,
         c.tx_to IS NOT NULL AS retired, c.position, coalesce(c.source_number, c.number),
         coalesce(c.null_before, 0)
  FROM tidemark.dataset d
  JOIN tidemark.dataset_column c ON c.dataset = d.id
  WHERE d.journal = $1 AND d.tx_dropped IS NULL
  ORDER BY c.dataset, c.number, c.tx_from DESC) AS newest
ORDER BY dataset, position, number
)sql",
      {std::to_string(journal)});
  for (int i = 0; i < columns.rows(); ++i) {
    DatasetColumn c;
    c.number = static_cast<int>(columns.int64(i, 1));
    c.name = columns.str(i, 2);
    c.source_type = static_cast<pg::Oid>(columns.int64(i, 3));
    c.type_modifier = static_cast<int>(columns.int64(i, 4));
    c.type_sql = columns.str(i, 5);
    c.source_number = static_cast<int>(columns.int64(i, 8));
    c.null_before = columns.int64(i, 9);
    Dataset& of = datasets[place.at(static_cast<int>(columns.int64(i, 0)))];
    (columns.boolean(i, 6) ? of.retired : of.columns).push_back(std::move(c));
  }
  return datasets;
}

void ForgetUnattached(pg::Connection& store, int journal) {
  store.Execute("DELETE FROM tidemark.dataset WHERE journal = $1 AND tx_first IS NULL",
                {std::to_string(journal)});
}

}  // namespace tidemark::temporal
