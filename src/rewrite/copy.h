// COPY of a table TO somewhere. PostgreSQL copies only the rows of the table itself, and a
// versioned table's rows are in its child tables, so it must become COPY of a query.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewrite/binding.h"
#include "rewrite/edit.h"
#include "rewrite/token.h"

namespace tidemark::rewrite {

struct CopyOfTable {
  std::vector<std::string> name;  // the parts given: [catalog,] [schema,] relation
  Bytes written;                  // the name in the client's text
  std::vector<Edit> edits;        // which make it COPY (SELECT … FROM name) TO
};

/// nullopt for any other statement, and for one that PostgreSQL's grammar does not accept.
std::optional<CopyOfTable> ReadCopyOfTable(std::string_view sql, const TokenList& tokens,
                                           StatementRange range);

}  // namespace tidemark::rewrite
