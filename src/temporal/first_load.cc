#include "temporal/first_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "temporal/plane.h"
#include "temporal/version_chain.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;

pg::Relation RelationOf(const Dataset& dataset, const std::vector<std::string>& not_null) {
  pg::Relation relation;
  relation.name = dataset.name;
  for (const auto& column : dataset.columns) {
    relation.columns.push_back(
        {.number = column.number,
         .name = column.name,
         .type = column.source_type,
         .modifier = column.type_modifier,
         .type_sql = column.type_sql,
         .collation = "",
         .not_null = std::find(not_null.begin(), not_null.end(), column.name) != not_null.end(),
         .comment = {}});
  }
  pg::Index key;
  key.name = dataset.name.name + "_pkey";
  if (key.name.size() > 63) key.name = fmt::format("d{}_pkey", dataset.id);
  key.columns = dataset.key_columns;
  key.unique = key.primary = true;
  key.constraint = "p";
  relation.indexes.push_back(std::move(key));
  return relation;
}

FirstLoad::FirstLoad(pg::Connection& store, const Dataset& dataset, const pg::Relation& relation)
    : digest_(PutDigest::Begin(store, dataset.columns)) {
  transaction_.emplace(store);
  CreateCurrent(store, dataset, relation, kFirstTx);
  copy_ = std::make_unique<BatchCopy>(
      store,
      fmt::format("COPY {} ({}) FROM STDIN (FORMAT binary)", dataset.Current(),
                  dataset.ColumnList()),
      BatchCopy::Options{.digest = digest_.get()});
}

int64_t FirstLoad::Finish() {
  const int64_t rows = copy_->Finish();
  copy_.reset();
  std::move(*transaction_).Commit();
  transaction_.reset();
  return rows;
}

void LoadFromStage(pg::Connection& store, const Dataset& dataset, const pg::Relation& relation,
                   const Stage& stage) {
  pg::Transaction transaction(store);
  CreateCurrent(store, dataset, relation, kFirstTx);
  store.Execute(fmt::format("INSERT INTO {} ({}) SELECT {} FROM {} s ORDER BY _ordinal",
                            dataset.Current(), dataset.ColumnList(),
                            stage.Values(dataset.columns), stage.table()));
  std::move(transaction).Commit();
}

TransitionSummary FinishFirstLoad(pg::Connection& store, const Dataset& dataset,
                                  const pg::Relation& relation, int64_t rows, PutDigest* digest) {
  const std::string current = dataset.Current();
  try {
    BuildIndexes(store, dataset, relation);
  } catch (const Error& error) {
    if (error.state().error_class() != "23") throw;
    // Its rows lie in the order of their ordinals.
    std::vector<std::string> keys;
    for (const auto& key : dataset.key_columns) keys.push_back("c." + QuoteIdentifier(key));
    RefuseBadKeys(store, dataset,
                  fmt::format("(SELECT k.*, pg_catalog.row_number() OVER (ORDER BY k.ctid) AS "
                              "_ordinal FROM {} k) c",
                              current),
                  keys, "c._ordinal");
    throw;
  }
  TransitionSummary summary{.puts = rows, .rows_added = rows, .digest = ""};
  if (digest != nullptr) {
    if (auto computed = digest->Finish()) {
      summary.digest = std::move(*computed);
      return summary;
    }
  }
  std::vector<std::string> values;
  for (const auto& column : dataset.columns) {
    values.push_back("c." + QuoteIdentifier(column.name) + "::pg_catalog.text");
  }
  pg::Transaction transaction(store);
  PreferParallel(store);
  summary.digest = ComputeDigest(
      store, fmt::format("SELECT {} AS h FROM {} c", RowHashSql(store, 'P', values), current));
  std::move(transaction).Commit();
  return summary;
}

}  // namespace tidemark::temporal
