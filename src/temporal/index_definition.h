// The text of pg_get_indexdef(), rewritten for another table. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::temporal {

/// `definition` is `CREATE [UNIQUE] INDEX name ON [ONLY] schema.table USING …`. The answer creates
/// the same index as `name` (not yet quoted) on `table` (already quoted). Throws XX000 when the
/// text has another form.
std::string IndexDefinitionFor(std::string_view definition, std::string_view name,
                               std::string_view table, bool unique);

}  // namespace tidemark::temporal
