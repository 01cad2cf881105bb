// A declared relation name and its parts, and how the database behind a driver quotes names. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::source {

struct TableName {
  std::string catalog, schema, table;  // the first two may be empty

  /// Throws 42601 for empty parts, more than three, or an unpaired quote.
  static TableName Parse(std::string_view text);
  std::string Quoted(char quote) const;
};

/// `name` between quotes, inner ones doubled.
std::string QuoteName(std::string_view name, char quote);

/// The quote of names in the SQL of a database product, as its driver names it.
char QuoteOf(std::string_view vendor);

}  // namespace tidemark::source
