// Which tables of a source inherit from which (INHERITS, no partitions), and what that means for a
// mirror of some of them: a SELECT of a table there shows the rows of all its heirs, so here it has
// to show those of the heirs that are mirrored, and those of the others are missing. Manual:
// "Inheritance".
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"

namespace tidemark::source {

/// One table that inherits from another.
struct InheritedTable {
  pg::Oid child = 0, parent = 0;
  std::string child_name;  // schema.table
};

/// All of the database, without partitions and temporary tables, whose rows their own session alone
/// sees. One round trip.
std::vector<InheritedTable> LoadInheritance(pg::Connection& source);

struct Families {
  /// Child and parent, both mirrored: direct ones, and through tables between them that are not.
  std::set<std::pair<pg::Oid, pg::Oid>> links;
  /// By the mirrored table that lacks their rows: its heirs that are not mirrored, by name.
  std::map<pg::Oid, std::set<std::string>> missing;
};

Families FamiliesOf(std::span<const InheritedTable> inheritance, const std::set<pg::Oid>& mirrored);

}  // namespace tidemark::source
