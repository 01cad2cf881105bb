#include "source/postgres/preflight_identity.h"

#include <algorithm>

namespace tidemark::source {

using pg::ReplicaIdentity;

namespace {

const pg::Index* IdentityIndex(const pg::Relation& relation) {
  if (relation.identity == ReplicaIdentity::kDefault) return relation.PrimaryKey();
  if (relation.identity != ReplicaIdentity::kIndex) return nullptr;
  for (const auto& index : relation.indexes) {
    if (index.replica_identity && index.valid) return &index;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> IdentityFault(const pg::Relation& relation) {
  switch (relation.identity) {
    case ReplicaIdentity::kFull:
      return std::nullopt;
    case ReplicaIdentity::kNothing:
      return "replica identity NOTHING";
    case ReplicaIdentity::kIndex:
      if (IdentityIndex(relation) == nullptr) {
        return "a replica identity whose index was dropped";
      }
      return std::nullopt;
    case ReplicaIdentity::kDefault: {
      const pg::Index* key = relation.PrimaryKey();
      if (key == nullptr) return "no primary key";
      if (!key->immediate) return "a deferrable primary key, which identifies no row";
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool HasGeneratedKey(const pg::Relation& relation) {
  const pg::Index* index = IdentityIndex(relation);
  if (index == nullptr) return false;
  return std::any_of(index->columns.begin(), index->columns.end(), [&](const std::string& name) {
    const pg::Column* column = relation.Find(name);
    return column != nullptr && column->generated;
  });
}

bool CoversIdentity(const pg::Relation& relation, const std::vector<std::string>& columns) {
  const auto carried = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (relation.identity == ReplicaIdentity::kFull) {
    return std::all_of(relation.columns.begin(), relation.columns.end(),
                       [&](const pg::Column& c) { return c.generated || carried(c.name); });
  }
  const pg::Index* index = IdentityIndex(relation);
  return index != nullptr && std::all_of(index->columns.begin(), index->columns.end(), carried);
}

bool SendsKeyOf(const pg::Relation& leaf, const pg::Relation& root) {
  if (leaf.identity == ReplicaIdentity::kFull) return true;
  return !root.KeyColumns().empty() && leaf.KeyColumns() == root.KeyColumns();
}

}  // namespace tidemark::source
