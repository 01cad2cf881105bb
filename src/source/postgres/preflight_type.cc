#include "source/postgres/preflight_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/identifier.h"
#include "source/postgres/raw_text.h"

namespace tidemark::source {

using pg::Oid;
using pg::Type;

namespace {

std::string OidArray(const std::set<Oid>& oids) {
  return fmt::format("{{{}}}", fmt::join(oids, ","));
}

std::vector<Oid> CarriedTypes(std::span<const PublishedTable> tables) {
  std::set<Oid> types;
  for (const auto& table : tables) {
    for (const auto& name : table.columns) types.insert(table.relation.Find(name)->type);
  }
  return {types.begin(), types.end()};
}

// Types that are a table's row type: the store's table of that name would need the same name.
constexpr const char* kRowTypes = R"sql(
SELECT t.oid
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
WHERE t.oid = ANY ($1::oid[]) AND c.relkind <> 'c'
)sql";

std::set<Oid> RowTypes(pg::Connection& source, const std::vector<Type>& types) {
  std::set<Oid> composites;
  for (const auto& type : types) {
    if (type.type == 'c') composites.insert(type.oid);
  }
  if (composites.empty()) return {};
  std::set<Oid> found;
  const auto rows = source.Execute(kRowTypes, {OidArray(composites)});
  for (int i = 0; i < rows.rows(); ++i) found.insert(static_cast<Oid>(rows.int64(i, 0)));
  return found;
}

constexpr const char* kStoreExtensions = R"sql(
SELECT name FROM pg_catalog.pg_available_extensions
UNION
SELECT extname FROM pg_catalog.pg_extension
)sql";

constexpr const char* kStoreBaseTypes = R"sql(
SELECT n.nspname, t.typname
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'b' AND t.typelem = 0 AND t.oid >= 16384
)sql";

// What the store can offer; absent when there is no store to ask.
struct Offer {
  std::set<std::string> extensions;
  std::set<base::QualifiedName> base_types;
};

std::optional<Offer> LoadOffer(pg::Connection* store) {
  if (store == nullptr) return std::nullopt;
  Offer offer;
  const auto extensions = store->Execute(kStoreExtensions);
  for (int i = 0; i < extensions.rows(); ++i) offer.extensions.insert(extensions.str(i, 0));
  const auto types = store->Execute(kStoreBaseTypes);
  for (int i = 0; i < types.rows(); ++i) {
    offer.base_types.insert({types.str(i, 0), types.str(i, 1)});
  }
  return offer;
}

bool IsCatalogType(const Type& type) { return type.name.schema == "pg_catalog"; }

// regclass and its kin hold an OID of the source's catalog; aclitem holds a role.
bool RefersToCatalog(const Type& type) {
  return IsCatalogType(type) && type.element == 0 &&
         (type.name.name.starts_with("reg") || type.name.name == "aclitem");
}

// Types that accept no input, so that nothing can be stored in a column of them.
bool HasNoInput(const Type& type) {
  constexpr std::array<std::string_view, 6> kOutputOnly = {
      "pg_node_tree", "pg_ndistinct",          "pg_dependencies",
      "pg_mcv_list",  "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary"};
  return IsCatalogType(type) &&
         std::find(kOutputOnly.begin(), kOutputOnly.end(), type.name.name) != kOutputOnly.end();
}

std::optional<TypeFault> OwnFault(const Type& type, const std::set<Oid>& row_types,
                                  const std::optional<Offer>& offer) {
  const std::string name = type.name.Display();
  if (RefersToCatalog(type)) {
    return TypeFault{
        fmt::format("type {} refers to objects of the source's catalog", type.name.name),
        "store the name as text, or the number as oid", base::kFeatureNotSupported};
  }
  if (HasNoInput(type)) {
    return TypeFault{fmt::format("type {} accepts no input", type.name.name),
                     "store the value as text", base::kFeatureNotSupported};
  }
  if (type.oid < pg::kFirstUserOid) return std::nullopt;
  if (!HasReadableNames(type)) {
    return TypeFault{fmt::format("type {} has a name or a label that is not UTF-8, but the source's "
                                 "encoding is SQL_ASCII",
                                 name),
                     "rename it", base::kCharacterNotInRepertoire};
  }
  if (row_types.contains(type.oid)) {
    return TypeFault{fmt::format("type {} is the row type of a relation", name),
                     "use a composite type of its own (CREATE TYPE … AS)",
                     base::kFeatureNotSupported};
  }
  if (!offer) return std::nullopt;
  if (!type.extension.empty() && !offer->extensions.contains(type.extension)) {
    return TypeFault{
        fmt::format("type {} needs extension \"{}\", which the store lacks", name, type.extension),
        "install the extension's files on the store's server, or set unknown_types: text",
        base::kUndefinedObject, /*unknown=*/true};
  }
  if (type.extension.empty() && type.type == 'b' && type.element == 0 &&
      !offer->base_types.contains(type.name)) {
    return TypeFault{
        fmt::format("base type {} belongs to no extension and the store lacks it", name),
        "create the type in the store, or set unknown_types: text", base::kUndefinedObject,
        /*unknown=*/true};
  }
  return std::nullopt;
}

std::vector<Oid> Parts(const Type& type) {
  std::vector<Oid> parts = {type.element, type.base, type.range_subtype, type.range};
  for (const auto& attribute : type.attributes) parts.push_back(attribute.type);
  return parts;
}

}  // namespace

TypeFaults::TypeFaults(pg::Connection& source, pg::Connection* store,
                       std::span<const PublishedTable> tables) {
  const auto types = pg::LoadTypes(source, CarriedTypes(tables));
  const auto row_types = RowTypes(source, types);
  const auto offer = LoadOffer(store);
  for (const auto& type : types) {  // each after its parts
    auto fault = OwnFault(type, row_types, offer);
    for (const Oid part : Parts(type)) {
      const TypeFault* of_part = Find(part);
      if (!fault && of_part != nullptr) fault = *of_part;
    }
    if (fault) faults_.emplace(type.oid, std::move(*fault));
  }
}

const TypeFault* TypeFaults::Find(Oid type) const {
  const auto found = faults_.find(type);
  return found == faults_.end() ? nullptr : &found->second;
}

}  // namespace tidemark::source
