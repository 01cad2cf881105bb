#include "temporal/stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "temporal/row_stream.h"
#include "wire/bytes.h"

namespace tidemark::temporal {

namespace {

// Below it an index costs more than it saves.
constexpr int64_t kOrderedRowsLeast = 10'000;
constexpr int32_t kTidBytes = sizeof(uint32_t) + sizeof(uint16_t);

std::string TidText(RowPlace place) {
  return fmt::format("({},{})", BlockOf(place), LineOf(place));
}

// A few hundred rows say enough about sizes and about the order that the rows lie in.
void Analyze(pg::Connection& store, const std::string& table) {
  store.Execute(fmt::format("SET default_statistics_target = 1; ANALYZE {}; "
                            "RESET default_statistics_target",
                            table));
}

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

Stage Stage::CreateForCopy(pg::Connection& store, int64_t capture, int dataset,
                           std::vector<DatasetColumn> columns, bool hashed) {
  Stage stage = Create(store, capture, dataset, std::move(columns));
  stage.hashed_ = hashed;
  store.Execute(fmt::format(
      "ALTER TABLE {} ALTER _ordinal ADD GENERATED ALWAYS AS IDENTITY (CACHE 1000), "
      "ADD _hash uuid",
      stage.table_));
  return stage;
}

std::string Stage::CopyCommand() const {
  std::string names;
  for (size_t i = 0; i < columns_.size(); ++i) {
    names += fmt::format("{}c{}", i == 0 ? "" : ", ", i + 1);
  }
  if (hashed_) names += ", _hash";
  return fmt::format("COPY {} ({}) FROM STDIN (FORMAT binary)", table_, names);
}

void Stage::FinishKeyless(pg::Connection& store, int64_t rows) {
  rows_ = rows;
  store.Execute("ANALYZE " + table_);
}

std::unique_ptr<BatchCopy> Stage::Fill(pg::Connection& store, RowFilter* filter) const {
  return std::make_unique<BatchCopy>(store, fmt::format("COPY {} FROM STDIN (FORMAT binary)", table_),
                                     BatchCopy::Options{.filter = filter});
}

void Stage::Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key) {
  rows_ = rows;
  Analyze(store, table_);
  const bool any_text = std::any_of(columns_.begin(), columns_.end(), [&](const auto& c) {
    return !c.binary && std::find(key.begin(), key.end(), c.name) != key.end();
  });
  if (rows < kOrderedRowsLeast || any_text) return;
  std::string columns;
  for (const auto& name : key) columns += (columns.empty() ? "" : ", ") + Value(name).substr(2);
  store.Execute(fmt::format("CREATE UNIQUE INDEX ON {} ({})", table_, columns));
  ordered_ = true;
}

void Stage::Finish(pg::Connection& store, int64_t rows, const std::vector<std::string>& key,
                   Remainder remainder) {
  file_ = remainder.file;
  met_ = remainder.met;
  // Nothing has fallen through: as if there had been no sift.
  if (met_ == 0) return Finish(store, rows, key);
  rows_ = rows;
  beyond_ = remainder.beyond;
  store.Execute(fmt::format("DROP TABLE IF EXISTS {0}; CREATE UNLOGGED TABLE {0} "
                            "(place tid NOT NULL) WITH (autovacuum_enabled = off)",
                            Rest()));
  std::sort(remainder.unmet.begin(), remainder.unmet.end());
  RowStream places(store, fmt::format("COPY {} FROM STDIN (FORMAT binary)", Rest()), 1);
  for (const RowPlace place : remainder.unmet) {
    places.Begin();
    wire::ByteWriter out(places.buffer());
    out.WriteI32(kTidBytes);
    out.WriteU32(BlockOf(place));
    out.WriteU16(LineOf(place));
  }
  places.Finish();
  Analyze(store, table_);
  Analyze(store, Rest());
}

std::string Stage::Opposite(const std::string& current) const {
  if (met_ == 0) return current + " c";
  std::string rows = fmt::format("SELECT k.ctid, k.* FROM {} r JOIN {} k ON k.ctid = r.place",
                                 Rest(), current);
  if (beyond_) {
    rows += fmt::format(" UNION ALL SELECT k.ctid, k.* FROM {} k WHERE k.ctid > '{}'", current,
                        TidText(*beyond_));
  }
  return fmt::format("({}) c", rows);
}

void Stage::CheckFile(pg::Connection& store, const Dataset& dataset) const {
  if (met_ == 0 || CurrentFile(store, dataset) == file_) return;
  throw base::Error(base::kNotInPrerequisiteState,
                    fmt::format("{} was rewritten while it was compared", dataset.Current()))
      .Hint("Capture once more.");
}

bool Stage::RepeatsMetKey(pg::Connection& store, const Dataset& dataset) const {
  if (met_ == 0 || rows_ == 0) return false;
  std::string same_key;
  for (const auto& key : dataset.key_columns) {
    same_key += fmt::format("{}c.{} = {}", same_key.empty() ? "" : " AND ",
                            base::QuoteIdentifier(key), Value(key));
  }
  // All are counted: for the first one alone the planner would choose a nested loop, which without
  // any takes for ever.
  const auto repeated = store.Execute(fmt::format(
      "SELECT count(*) FROM {} s JOIN {} c ON {} "
      "WHERE NOT EXISTS (SELECT FROM {} r WHERE r.place = c.ctid){}",
      table_, dataset.Current(), same_key, Rest(),
      beyond_ ? fmt::format(" AND c.ctid <= '{}'", TidText(*beyond_)) : ""));
  return repeated.int64(0, 0) > 0;
}

void Stage::Drop(pg::Connection& store) const {
  store.Execute(fmt::format("DROP TABLE IF EXISTS {}, {}", table_, Rest()));
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
