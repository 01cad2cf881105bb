// SQL names and literals as text that is safe to put into a statement. The only way a name gets
// into SQL. Not a parser: names are taken as they stand in the catalog, never folded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::base {

/// `name` in double quotes, inner quotes doubled. Always quoted, so that keywords and upper case
/// need no thought. Throws 22023 for a name with a NUL byte or an empty name.
std::string QuoteIdentifier(std::string_view name);
/// All of them, with commas between.
std::string QuoteIdentifiers(const std::vector<std::string>& names);

/// `value` as a string literal, with E'' when it holds a backslash.
std::string QuoteLiteral(std::string_view value);

/// A schema-qualified name of the catalog.
struct QualifiedName {
  std::string schema;
  std::string name;
  /// "schema"."name", quoted.
  std::string Quoted() const;
  /// schema.name as people read it, quoted only where SQL needs it.
  std::string Display() const;
  auto operator<=>(const QualifiedName&) const = default;
};

/// `name` as PostgreSQL's quote_identifier would show it: quoted only when needed (keywords are
/// not looked up, so this is for messages, never for SQL).
std::string DisplayIdentifier(std::string_view name);

}  // namespace tidemark::base
