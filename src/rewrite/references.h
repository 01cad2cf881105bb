// The tables and columns that one statement refers to, found in its parse tree, with what SQL's
// scoping rules say of them: CTE names, query levels, row locks. Knows nothing of clauses.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::rewrite {

struct TableReference {
  size_t offset;                  // byte of the name's first character
  std::vector<std::string> name;  // the parts given: [catalog,] [schema,] relation
  bool has_alias = false;
  bool reads = false;                   // stands in FROM, USING, …: not a target
  std::string_view target_of;           // INSERT, …; empty when it reads or is something else
  bool is_cte = false;                  // an unqualified name that a visible WITH defines
  std::optional<size_t> sample_offset;  // TABLESAMPLE's method name
  size_t level = 0;                     // the query level it stands in
};

/// schema.table.column, catalog.schema.table.column or schema.table.*
struct ColumnReference {
  size_t offset;
  std::vector<std::string> name;  // without the star
  bool star = false;
  size_t level = 0;
  std::string_view schema() const { return name[name.size() - (star ? 2 : 3)]; }
  std::string_view table() const { return name[name.size() - (star ? 1 : 2)]; }
};

/// A FOR UPDATE or its like, and the tables it locks.
struct RowLock {
  std::string_view words;
  std::vector<size_t> tables;    // indices into References::tables
  std::optional<size_t> offset;  // of the first name after OF
};

struct References {
  std::vector<TableReference> tables;
  std::vector<std::string> calls;  // names of functions, as parse_ident() reads them, each once
  std::vector<ColumnReference> columns;
  std::vector<RowLock> locks;
};

/// Query levels of all statements of a text: entry = the level around it; level 0 is outermost.
using QueryLevels = std::vector<size_t>;
bool IsWithin(const QueryLevels& levels, size_t inner, size_t outer);

/// `tree` is the statement's node, e.g. {"SelectStmt": {…}}; `offset` is added to its locations.
/// New levels are appended to `levels`.
References FindReferences(const nlohmann::json& tree, size_t offset, QueryLevels& levels);

/// The column reference of a ColumnRef node if it names a schema.
std::optional<ColumnReference> SchemaQualifiedColumn(const nlohmann::json& column_ref);

}  // namespace tidemark::rewrite
