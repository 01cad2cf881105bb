#include "source/postgres/preflight_access.h"

#include <fmt/format.h>

#include <utility>

namespace tidemark::source {

using pg::Oid;

namespace {

std::string OidArray(std::span<const PublishedTable> tables) {
  std::vector<Oid> oids;
  for (const auto& table : tables) oids.push_back(table.relation.oid);
  return fmt::format("{{{}}}", fmt::join(oids, ","));
}

Oid OidOf(const pg::Result& rows, int row, int column) {
  return static_cast<Oid>(rows.int64(row, column));
}

constexpr const char* kPrivileges = R"sql(
SELECT c.oid, pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE'),
       pg_catalog.pg_has_role(c.relowner, 'USAGE'),
       pg_catalog.row_security_active(c.oid)
FROM pg_catalog.pg_class c
WHERE c.oid = ANY ($1::oid[])
)sql";

constexpr const char* kUnreadableColumns = R"sql(
SELECT a.attrelid, a.attname
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
  AND NOT pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
)sql";

constexpr const char* kLeaves = R"sql(
SELECT root.oid, leaf.relid::oid
FROM pg_catalog.pg_class root
CROSS JOIN LATERAL pg_catalog.pg_partition_tree(root.oid) AS leaf
WHERE root.oid = ANY ($1::oid[]) AND root.relkind = 'p' AND leaf.isleaf
)sql";

void LoadLeaves(pg::Connection& source, const std::string& tables,
                std::map<Oid, TableAccess>& access) {
  const auto rows = source.Execute(kLeaves, {tables});
  std::vector<Oid> leaves;
  std::map<Oid, Oid> root_of;
  for (int i = 0; i < rows.rows(); ++i) {
    leaves.push_back(OidOf(rows, i, 1));
    root_of[leaves.back()] = OidOf(rows, i, 0);
  }
  if (leaves.empty()) return;
  for (auto& leaf : pg::LoadRelations(source, leaves)) {
    if (leaf.kind == 'p') continue;  // a partitioned partition that has none of its own yet
    access[root_of.at(leaf.oid)].leaves.push_back(std::move(leaf));
  }
}

}  // namespace

std::map<Oid, TableAccess> LoadAccess(pg::Connection& source,
                                      std::span<const PublishedTable> tables) {
  const std::string wanted = OidArray(tables);
  std::map<Oid, TableAccess> access;
  const auto rows = source.Execute(kPrivileges, {wanted});
  for (int i = 0; i < rows.rows(); ++i) {
    TableAccess& table = access[OidOf(rows, i, 0)];
    table.schema_usage = rows.boolean(i, 1);
    table.owned = rows.boolean(i, 2);
    table.filtered = rows.boolean(i, 3);
  }
  const auto unreadable = source.Execute(kUnreadableColumns, {wanted});
  for (int i = 0; i < unreadable.rows(); ++i) {
    access[OidOf(unreadable, i, 0)].unreadable_columns.insert(unreadable.str(i, 1));
  }
  LoadLeaves(source, wanted, access);
  return access;
}

namespace {

constexpr const char* kCollationKnown = R"sql(
SELECT pg_catalog.to_regcollation($1) IS NOT NULL
)sql";

}  // namespace

std::set<std::string> MissingCollations(pg::Connection& store,
                                        std::span<const PublishedTable> tables) {
  std::set<std::string> used;
  for (const auto& table : tables) {
    for (const auto& name : table.columns) {
      const std::string& collation = table.relation.Find(name)->collation;
      if (!collation.empty()) used.insert(collation);
    }
  }
  std::set<std::string> missing;
  for (const auto& collation : used) {
    if (store.Value(kCollationKnown, {collation}) != "t") missing.insert(collation);
  }
  return missing;
}

}  // namespace tidemark::source
