#include "temporal/types.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/identifier.h"
#include "temporal/type_definition.h"

namespace tidemark::temporal {

using base::Error;
using pg::Oid;
using pg::Type;

const StoreType& TypeMap::At(Oid source_oid) const {
  const auto found = types_.find(source_oid);
  if (found == types_.end()) {
    throw Error(base::kUndefinedObject,
                fmt::format("the store has no counterpart of type {} of the source", source_oid));
  }
  return found->second;
}

std::string TypeMap::StoreSql(Oid source_oid, std::string_view type_sql) const {
  const StoreType& type = At(source_oid);
  if (type.source_sql == type.store_sql || !type_sql.starts_with(type.source_sql)) {
    return std::string(type_sql);
  }
  return type.store_sql + std::string(type_sql.substr(type.source_sql.size()));
}

namespace {

// OIDs below this are written down in PostgreSQL's sources and equal on every server; from here on
// they are dealt out when the server is built or initialized.
constexpr Oid kFirstDealtOid = 10000;

constexpr const char* kByName = R"sql(
SELECT t.oid
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = $1 AND t.typname = $2
)sql";

constexpr const char* kByExtension = R"sql(
SELECT t.oid
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_depend d
  ON d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid
 AND d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.deptype = 'e'
JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
WHERE e.extname = $1 AND t.typname = $2
)sql";

constexpr const char* kArrayOf = R"sql(
SELECT typarray FROM pg_catalog.pg_type WHERE oid = $1::oid AND typarray <> 0
)sql";

constexpr const char* kMultirangeOf = R"sql(
SELECT rngmultitypid FROM pg_catalog.pg_range WHERE rngtypid = $1::oid
)sql";

constexpr const char* kBinaryAndNames = R"sql(
SELECT t.typsend <> 0 AND t.typreceive <> 0,
       pg_catalog.format_type(t.oid, NULL),
       pg_catalog.quote_ident($2) || '.' || pg_catalog.quote_ident($3)
FROM pg_catalog.pg_type t
WHERE t.oid = $1::oid
)sql";

std::optional<Oid> FirstOid(const pg::Result& rows) {
  if (rows.rows() == 0) return std::nullopt;
  return static_cast<Oid>(rows.int64(0, 0));
}

bool IsDealt(const Type& type) { return type.oid >= kFirstDealtOid; }

}  // namespace

// One call of EnsureTypes. Types arrive each after its parts, so a part's answer is in map_.
class TypeCreation {
 public:
  explicit TypeCreation(pg::Connection& store) : store_(store) {}

  void Ensure(const Type& type) {
    StoreType made;
    made.oid = IsDealt(type) ? FindOrCreate(type) : type.oid;
    made.plan = Plan(type, made.oid);
    made.binary = type.binary;
    for (const Oid part : Parts(type)) made.binary = made.binary && map_.At(part).binary;
    if (IsDealt(type)) ReadStoreSide(type, made);
    map_.types_.insert_or_assign(type.oid, std::move(made));
  }

  TypeMap Take() && { return std::move(map_); }

 private:
  static std::vector<Oid> Parts(const Type& type) {
    std::vector<Oid> parts;
    for (const Oid part :
         {type.element, type.base, type.range != 0 ? type.range : type.range_subtype}) {
      if (part != 0) parts.push_back(part);
    }
    for (const auto& attribute : type.attributes) parts.push_back(attribute.type);
    return parts;
  }

  Oid FindOrCreate(const Type& type) {
    if (type.element != 0) {
      return Required(type, store_.Execute(kArrayOf, {StoreOid(type.element)}));
    }
    if (type.type == 'm') {
      return Required(type, store_.Execute(kMultirangeOf, {StoreOid(type.range)}));
    }
    if (!type.extension.empty()) {
      EnsureExtension(store_, type.extension, type.name.schema);
      return Required(type, store_.Execute(kByExtension, {type.extension, type.name.name}));
    }
    if (const auto found = FirstOid(store_.Execute(kByName, {type.name.schema, type.name.name}))) {
      if (type.oid >= pg::kFirstUserOid) AdaptType(store_, type, *found, map_);
      return *found;
    }
    if (type.oid >= pg::kFirstUserOid) CreateType(store_, type, map_);
    return Required(type, store_.Execute(kByName, {type.name.schema, type.name.name}));
  }

  std::string StoreOid(Oid source_oid) const { return std::to_string(map_.At(source_oid).oid); }

  static Oid Required(const Type& type, const pg::Result& rows) {
    if (const auto found = FirstOid(rows)) return *found;
    Error error(base::kUndefinedObject,
                fmt::format("type {} does not exist in the store", type.name.Display()));
    if (type.extension.empty()) throw error;
    throw std::move(error).Hint(fmt::format(
        "The store's version of extension \"{}\" lacks it; update the extension.", type.extension));
  }

  wire::TypeNode Plan(const Type& type, Oid store_oid) const {
    using Kind = wire::TypeNode::Kind;
    wire::TypeNode node{Kind::kScalar, type.oid, store_oid, {}};
    if (type.base != 0) {
      const auto& base = map_.At(type.base).plan;
      node.kind = base.kind;
      node.children = base.children;
      return node;
    }
    if (type.element != 0) node.kind = Kind::kArray;
    if (type.type == 'c') node.kind = Kind::kComposite;
    if (type.type == 'r') node.kind = Kind::kRange;
    if (type.type == 'm') node.kind = Kind::kMultirange;
    for (const Oid part : Parts(type)) node.children.push_back(map_.At(part).plan);
    return node;
  }

  void ReadStoreSide(const Type& type, StoreType& made) {
    const auto row = store_.Execute(kBinaryAndNames,
                                    {std::to_string(made.oid), type.name.schema, type.name.name});
    made.binary = made.binary && row.boolean(0, 0);
    made.store_sql = row.str(0, 1);
    made.source_sql = row.str(0, 2);
    if (type.element != 0) {  // format_type shows arrays as their element with brackets
      made.source_sql = map_.At(type.element).source_sql;
      made.store_sql = map_.At(type.element).store_sql;
    }
  }

  pg::Connection& store_;
  TypeMap map_;
};

TypeMap EnsureTypes(pg::Connection& store, const std::vector<Type>& source_types) {
  TypeCreation creation(store);
  for (const auto& type : source_types) {
    try {
      creation.Ensure(type);
    } catch (Error& error) {
      error.AddContext(fmt::format("type {} of the source", type.name.Display()));
      throw;
    }
  }
  return std::move(creation).Take();
}

}  // namespace tidemark::temporal
