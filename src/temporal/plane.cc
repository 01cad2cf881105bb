#include "temporal/plane.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "temporal/history.h"
#include "temporal/index_definition.h"
#include "temporal/reading.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using base::QuoteIdentifiers;
using base::QuoteLiteral;

namespace {

// Of a current table's pages, per cent: while it is filled, so that updates stay HOT, and after.
constexpr int kFillFactorFirst = 85;
constexpr int kFillFactorLater = 90;

// `"a" integer NOT NULL, …`. A collation that the store lacks is left to the type's default.
std::string ColumnDefinitions(pg::Connection& store, const Dataset& dataset,
                              const pg::Relation& upstream, bool not_null) {
  std::string definitions;
  for (const auto& column : dataset.columns) {
    const pg::Column* source = upstream.Find(column.name);
    if (!definitions.empty()) definitions += ", ";
    definitions += QuoteIdentifier(column.name) + " " + column.type_sql;
    if (source != nullptr && !source->collation.empty() &&
        !store.Value("SELECT coalesce(to_regcollation($1)::text, '')", {source->collation})
             .empty()) {
      definitions += " COLLATE " + source->collation;
    }
    if (not_null && source != nullptr && source->not_null) definitions += " NOT NULL";
  }
  return definitions;
}

// Runs DDL that may fail without harm to the surrounding transaction; says whether it worked.
bool TryDefine(pg::Connection& store, const std::string& sql, const std::string& what) {
  store.Execute("SAVEPOINT tidemark_define");
  try {
    store.Execute(sql);
    store.Execute("RELEASE SAVEPOINT tidemark_define");
    return true;
  } catch (const Error& error) {
    if (error.IsConnectionLoss()) throw;
    store.Execute("ROLLBACK TO SAVEPOINT tidemark_define");
    spdlog::warn("{} is left out: {}", what, error.message());
    return false;
  }
}

}  // namespace

// What AS OF compares stands first in every row, where reading it needs no look at the others.
void CreateCurrent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
                   int64_t tx) {
  const std::string columns = ColumnDefinitions(store, dataset, upstream, true);
  store.Execute(fmt::format(
      R"sql(
CREATE TABLE {} (_from bigint NOT NULL DEFAULT {},
                 _to bigint NOT NULL DEFAULT 9223372036854775807{}{}{})
WITH (fillfactor = {}, autovacuum_vacuum_scale_factor = 0.1)
)sql",
      dataset.Current(), tx, dataset.keying == Keying::kMultiset ? ", _hash uuid NOT NULL" : "",
      columns.empty() ? "" : ", ", columns, kFillFactorFirst));
  store.Execute("SELECT tidemark.keep_ended_of($1)", {dataset.Current()});
}

std::vector<std::string> BuildIndexes(pg::Connection& store, const Dataset& dataset,
                                      const pg::Relation& upstream) {
  std::vector<std::string> left_out;
  const std::string current = dataset.Current();
  pg::Transaction tx(store);
  const pg::Index* primary = upstream.PrimaryKey();
  const bool by_primary = primary != nullptr && dataset.keying == Keying::kKey &&
                          primary->columns == dataset.key_columns;
  if (dataset.keying == Keying::kKey) {
    store.Execute(by_primary
                      ? fmt::format("ALTER TABLE {} ADD PRIMARY KEY ({})", current,
                                    QuoteIdentifiers(dataset.key_columns))
                      : fmt::format("CREATE UNIQUE INDEX d{}_key ON {} ({})", dataset.id, current,
                                    QuoteIdentifiers(dataset.key_columns)));
  } else if (dataset.keying == Keying::kMultiset) {
    store.Execute(fmt::format("CREATE INDEX d{}_hash ON {} (_hash)", dataset.id, current));
  }
  int number = 0;
  for (const auto& index : upstream.indexes) {
    ++number;
    if ((index.primary && by_primary) || !index.valid) continue;
    if (dataset.keying == Keying::kKey && !by_primary && index.replica_identity) continue;
    // Not unique: a batch applies final states, in which two rows may have swapped a value.
    const auto sql = IndexDefinitionFor(index.definition, fmt::format("d{}_i{}", dataset.id, number),
                                        current, /*unique=*/false);
    if (!TryDefine(store, sql, fmt::format("index {}", index.name))) left_out.push_back(index.name);
  }
  std::move(tx).Commit();
  // The server tidies a page, on the way to a row of it, once less room is left there than new rows
  // leave (at least a tenth). So what was kept free while the table was filled is used up first.
  store.Execute(fmt::format(
      "ALTER TABLE {0} SET (fillfactor = {1}), ALTER _from DROP DEFAULT; ANALYZE {0}", current,
      kFillFactorLater));
  return left_out;
}

namespace {

void CreateParent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream) {
  const std::string parent = dataset.name.Quoted();
  store.Execute(
      fmt::format("CREATE SCHEMA IF NOT EXISTS {}", QuoteIdentifier(dataset.name.schema)));
  store.Execute(fmt::format("CREATE TABLE {} ({})", parent,
                            ColumnDefinitions(store, dataset, upstream, true)));
  for (const auto& index : upstream.indexes) {
    if (!index.valid) continue;
    const auto what = fmt::format("index {}", index.name);
    if (index.primary || (!index.constraint.empty() && index.unique)) {
      TryDefine(store,
                fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {} ({})", parent,
                            QuoteIdentifier(index.name),
                            index.primary ? "PRIMARY KEY" : "UNIQUE",
                            QuoteIdentifiers(index.columns)),
                what);
    } else if (index.constraint.empty()) {
      TryDefine(store,
                IndexDefinitionFor(index.definition, index.name, parent, index.unique), what);
    }
  }
  if (upstream.comment) {
    store.Execute(
        fmt::format("COMMENT ON TABLE {} IS {}", parent, QuoteLiteral(*upstream.comment)));
  }
  for (const auto& column : upstream.columns) {
    const bool kept = std::any_of(dataset.columns.begin(), dataset.columns.end(),
                                  [&](const auto& one) { return one.name == column.name; });
    if (!column.comment || !kept) continue;
    store.Execute(fmt::format("COMMENT ON COLUMN {}.{} IS {}", parent,
                              QuoteIdentifier(column.name), QuoteLiteral(*column.comment)));
  }
  store.Execute(fmt::format("ALTER TABLE {} INHERIT {}", dataset.Current(), parent));
}

// Neither the parent of all versions nor that of the closed ones holds a row itself, which the
// planner is told by a constraint that every condition on _from contradicts.
void CreateHistory(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream) {
  std::string columns = ColumnDefinitions(store, dataset, upstream, false);
  if (!columns.empty()) columns = ", " + columns;
  store.Execute(fmt::format(
      R"sql(
CREATE TABLE {versions} (_from bigint, _to bigint{columns},
                         CONSTRAINT no_versions CHECK (_from IS NULL) NO INHERIT);
CREATE TABLE {history} (_from bigint NOT NULL, _to bigint NOT NULL{columns},
                        CONSTRAINT no_rows CHECK (_from IS NULL) NO INHERIT);
ALTER TABLE {history} INHERIT {versions};
ALTER TABLE {current} INHERIT {versions}
)sql",
      fmt::arg("versions", dataset.Versions()), fmt::arg("history", dataset.History()),
      fmt::arg("current", dataset.Current()), fmt::arg("columns", columns)));
  CreateFirstPartition(store, dataset);
}

}  // namespace

void Attach(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
            int64_t tx_first) {
  CreateParent(store, dataset, upstream);
  CreateHistory(store, dataset, upstream);
  Dataset first = dataset;
  first.tx_first = tx_first;
  DefineReading(store, first);
  GrantReading(store, dataset);
  const std::string parent = dataset.name.Quoted();
  store.Execute(
      "UPDATE tidemark.dataset SET tx_first = $2, relid = $3::regclass::oid WHERE id = $1",
      {std::to_string(dataset.id), std::to_string(tx_first), parent});
}

void LinkForeignKeys(pg::Connection& store, const std::vector<pg::Relation>& upstream) {
  for (const auto& relation : upstream) {
    for (const auto& key : relation.foreign_keys) {
      const bool target_here =
          std::any_of(upstream.begin(), upstream.end(),
                      [&](const auto& other) { return other.name == key.target; });
      if (!target_here) continue;
      TryDefine(store,
                fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", relation.name.Quoted(),
                            QuoteIdentifier(key.name), key.definition),
                fmt::format("foreign key {}", key.name));
    }
  }
}

void DropUnattached(pg::Connection& store, int dataset_id) {
  store.Execute(fmt::format("DROP TABLE IF EXISTS tidemark_current.d{}", dataset_id));
}

}  // namespace tidemark::temporal
