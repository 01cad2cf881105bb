// One field of a row on its way into the store: its OIDs and its text made the store's own
// (wire/oid_translation.h), and what is wrong with it said in words that name table, key and
// column.
#pragma once

#include <span>
#include <string>

#include "temporal/dataset.h"
#include "wire/oid_translation.h"
#include "wire/pgoutput.h"

namespace tidemark::temporal {

/// A key value as people know it, where that takes no server; else its bytes. Always UTF-8.
std::string ShowValue(const DatasetColumn& column, std::string_view value);

/// Translates `value`, a copy of the field that `row` has for `dataset.columns[column]`. Throws as
/// wire::Translate does; text that is not UTF-8 (22021) and an infinite interval (22008) by table,
/// key and column.
void TranslateField(const Dataset& dataset, size_t column, const wire::TypeNode& plan,
                    std::span<char> value, wire::pgoutput::Tuple row);

}  // namespace tidemark::temporal
