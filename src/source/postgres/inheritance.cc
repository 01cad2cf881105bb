#include "source/postgres/inheritance.h"

#include "base/identifier.h"
#include "source/postgres/raw_text.h"

namespace tidemark::source {

namespace {

constexpr const char* kInheritance = R"sql(
SELECT i.inhrelid, i.inhparent, n.nspname, c.relname
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent AND p.relkind IN ('r', 'f')
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid AND c.relpersistence <> 't'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY i.inhrelid, i.inhparent
)sql";

// Goes down from one mirrored table. `direct`: nothing that is mirrored lies between.
class Descent {
 public:
  Descent(const std::multimap<pg::Oid, const InheritedTable*>& children,
          const std::set<pg::Oid>& mirrored, pg::Oid from, Families& families)
      : children_(children), mirrored_(mirrored), from_(from), families_(families) {}

  void Visit(pg::Oid at, bool direct) {
    const auto [begin, end] = children_.equal_range(at);
    for (auto it = begin; it != end; ++it) {
      const InheritedTable& table = *it->second;
      if (!visited_.insert({table.child, direct}).second) continue;
      const bool mirrored = mirrored_.contains(table.child);
      if (mirrored && direct) families_.links.insert({table.child, from_});
      if (!mirrored) families_.missing[from_].insert(table.child_name);
      Visit(table.child, direct && !mirrored);
    }
  }

 private:
  const std::multimap<pg::Oid, const InheritedTable*>& children_;
  const std::set<pg::Oid>& mirrored_;
  const pg::Oid from_;
  Families& families_;
  std::set<std::pair<pg::Oid, bool>> visited_;
};

}  // namespace

std::vector<InheritedTable> LoadInheritance(pg::Connection& source) {
  const auto rows = source.Execute(kInheritance);
  std::vector<InheritedTable> tables;
  for (int i = 0; i < rows.rows(); ++i) {
    tables.push_back(
        {.child = static_cast<pg::Oid>(rows.int64(i, 0)),
         .parent = static_cast<pg::Oid>(rows.int64(i, 1)),
         .child_name = Readable(base::QualifiedName{rows.str(i, 2), rows.str(i, 3)}.Display())});
  }
  return tables;
}

Families FamiliesOf(std::span<const InheritedTable> inheritance,
                    const std::set<pg::Oid>& mirrored) {
  std::multimap<pg::Oid, const InheritedTable*> children;
  for (const auto& table : inheritance) children.emplace(table.parent, &table);
  Families families;
  for (const auto parent : mirrored) {
    if (children.contains(parent)) Descent(children, mirrored, parent, families).Visit(parent, true);
  }
  return families;
}

}  // namespace tidemark::source
