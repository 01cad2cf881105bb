#include "capture/dataset_shape.h"

#include <algorithm>

namespace tidemark::capture {

temporal::Dataset ShapeDataset(const source::PublishedTable& published,
                               const pg::Relation& relation, const temporal::TypeMap& types) {
  temporal::Dataset dataset;
  dataset.name = relation.name;
  dataset.source_oid = relation.oid;
  dataset.row_filter = published.row_filter.value_or("");
  for (const auto& column : relation.columns) {
    const bool carried = std::find(published.columns.begin(), published.columns.end(),
                                   column.name) != published.columns.end();
    if (!carried) continue;
    const auto& type = types.At(column.type);
    dataset.columns.push_back({.number = column.number,
                               .source_number = column.number,
                               .name = column.name,
                               .source_type = column.type,
                               .type_modifier = column.modifier,
                               .type_sql = types.StoreSql(column.type, column.type_sql),
                               .binary = type.binary});
  }
  const auto key = relation.KeyColumns();
  const bool key_carried = !key.empty() && std::all_of(key.begin(), key.end(), [&](const auto& k) {
    return std::any_of(dataset.columns.begin(), dataset.columns.end(),
                       [&](const auto& c) { return c.name == k; });
  });
  if (published.insert_only) {
    dataset.keying = temporal::Keying::kAppend;
  } else if (key_carried) {
    dataset.keying = temporal::Keying::kKey;
    dataset.key_columns = key;
  } else if (relation.identity == pg::ReplicaIdentity::kFull) {
    dataset.keying = temporal::Keying::kMultiset;
  } else {
    dataset.keying = temporal::Keying::kAppend;
  }
  return dataset;
}

temporal::Translations TranslationsOf(const temporal::Dataset& dataset,
                                      const temporal::TypeMap& types) {
  temporal::Translations plans;
  for (const auto& column : dataset.columns) {
    const auto& type = types.At(column.source_type);
    const auto& plan = column.binary ? type.plan : type.text_plan;
    plans.push_back(wire::NeedsTranslation(plan) ? &plan : nullptr);
  }
  return plans;
}

}  // namespace tidemark::capture
