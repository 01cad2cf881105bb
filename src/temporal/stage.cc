#include "temporal/stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

// Below it an index costs more than it saves.
constexpr int64_t kOrderedRowsLeast = 10'000;

}  // namespace

Stage Stage::Create(pg::Connection& store, int64_t capture, int dataset,
                    std::vector<DatasetColumn> columns) {
  Stage stage;
  stage.table_ = fmt::format("tidemark_stage.c{}_d{}", capture, dataset);
  stage.columns_ = std::move(columns);
  std::string definitions;
  for (size_t i = 0; i < stage.columns_.size(); ++i) {
    const auto& column = stage.columns_[i];
    definitions += fmt::format(", c{} {}", i + 1, column.binary ? column.type_sql : "text");
  }
  store.Execute(fmt::format(
      "DROP TABLE IF EXISTS {0}; "
      "CREATE UNLOGGED TABLE {0} (_ordinal bigint NOT NULL{1}) WITH (autovacuum_enabled = off)",
      stage.table_, definitions));
  return stage;
}

std::unique_ptr<BatchCopy> Stage::Fill(pg::Connection& store,
                                       std::shared_ptr<arrow::Schema> schema,
                                       Translations translations) const {
  return std::make_unique<BatchCopy>(
      store, fmt::format("COPY {} FROM STDIN (FORMAT binary)", table_), std::move(schema),
      BatchCopy::Options{.write_ordinal = true, .translations = std::move(translations)});
}

void Stage::Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key) {
  rows_ = rows;
  // A few hundred rows say enough about sizes and about the order that the rows lie in.
  store.Execute(fmt::format("SET default_statistics_target = 1; ANALYZE {}; "
                            "RESET default_statistics_target",
                            table_));
  const bool any_text = std::any_of(columns_.begin(), columns_.end(), [&](const auto& c) {
    return !c.binary && std::find(key.begin(), key.end(), c.name) != key.end();
  });
  if (rows < kOrderedRowsLeast || any_text) return;
  std::string columns;
  for (const auto& name : key) columns += (columns.empty() ? "" : ", ") + Value(name).substr(2);
  store.Execute(fmt::format("CREATE UNIQUE INDEX ON {} ({})", table_, columns));
  ordered_ = true;
}

void Stage::Drop(pg::Connection& store) const {
  store.Execute("DROP TABLE IF EXISTS " + table_);
}

std::string Stage::Value(const std::string& name) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const DatasetColumn& c) { return c.name == name; });
  if (found == columns_.end()) {
    throw base::Error(base::kInternalError, fmt::format("column \"{}\" was not staged", name));
  }
  return fmt::format("s.c{}{}", found - columns_.begin() + 1,
                     found->binary ? "" : "::" + found->type_sql);
}

std::string Stage::Values(const std::vector<std::string>& names) const {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + Value(name);
  return list;
}

std::string Stage::Values(const std::vector<DatasetColumn>& columns) const {
  std::vector<std::string> names;
  for (const auto& column : columns) names.push_back(column.name);
  return Values(names);
}

void DropDeadStages(pg::Connection& store) {
  const auto dead = store.Execute(R"sql(
SELECT c.oid::regclass
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'tidemark_stage'
WHERE c.relkind = 'r' AND NOT EXISTS (
  SELECT FROM tidemark.capture k
  WHERE k.state = 'running' AND c.relname LIKE 'c' || k.id || '\_d%')
)sql");
  for (int i = 0; i < dead.rows(); ++i) {
    store.Execute("DROP TABLE IF EXISTS " + dead.str(i, 0));
  }
}

}  // namespace tidemark::temporal
