// The text that PostgreSQL makes of a value, `value::text` under the settings of
// docs/formats/version.md, from its binary form: for types and values where that is simple and
// certain. Pure.
#pragma once

#include <string>
#include <string_view>

#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Whether values of the column may have such a text.
bool HasValueText(const DatasetColumn& column);

/// Appends the text of a value that the store has taken for the column. False, with nothing
/// appended, for a value whose text only PostgreSQL knows for certain.
bool AppendValueText(const DatasetColumn& column, std::string_view value, std::string& out);

}  // namespace tidemark::temporal
