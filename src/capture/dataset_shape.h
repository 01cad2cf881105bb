// From what the source publishes to what the store keeps: a dataset's columns, key and types.
#pragma once

#include "pg/relation.h"
#include "source/postgres/preflight.h"
#include "temporal/dataset.h"
#include "temporal/transition.h"
#include "temporal/types.h"

namespace tidemark::capture {

/// The dataset of a published table; `relation` is the table as the copy's snapshot sees it. `id`
/// and `journal` are left 0.
temporal::Dataset ShapeDataset(const source::PublishedTable& published,
                               const pg::Relation& relation, const temporal::TypeMap& types);

/// Borrowed from `types`.
temporal::Translations TranslationsOf(const temporal::Dataset& dataset,
                                      const temporal::TypeMap& types);

}  // namespace tidemark::capture
