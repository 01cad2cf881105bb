#include "temporal/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
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
  if (type.unknown) return type.store_sql;
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

// How text stands in the binary values of a type without parts; kScalar where there is none, or
// where it cannot be walked: then the store looks at it.
wire::TypeNode::Kind TextKind(const Type& type) {
  using Kind = wire::TypeNode::Kind;
  constexpr std::array<std::string_view, 7> kWhole = {"text", "varchar", "bpchar",   "name",
                                                      "json", "xml",     "refcursor"};
  constexpr std::array<std::string_view, 2> kVersioned = {"jsonb", "jsonpath"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), type.name.name) != names.end();
  };
  if (!type.extension.empty()) {
    if (type.extension == "citext" && type.name.name == "citext") return Kind::kText;
    if (type.extension == "ltree") return Kind::kVersionedText;
    return Kind::kScalar;
  }
  if (type.oid >= pg::kFirstUserOid) return Kind::kScalar;
  if (is_one_of(kWhole)) return Kind::kText;
  return is_one_of(kVersioned) ? Kind::kVersionedText : Kind::kScalar;
}

}  // namespace

// One call of EnsureTypes. Types arrive each after its parts, so a part's answer is in map_.
class TypeCreation {
 public:
  TypeCreation(pg::Connection& store, const TypeOptions& options)
      : store_(store), options_(options) {}

  void Ensure(const Type& type) {
    StoreType made;
    if (options_.raw_text != RawText::kNone) {
      made.text_plan.kind = wire::TypeNode::Kind::kText;
      made.text_plan.replace = options_.raw_text == RawText::kReplace;
    }
    if (const auto found = Counterpart(type)) {
      made.oid = *found;
    } else {
      BeText(made);
      map_.types_.insert_or_assign(type.oid, std::move(made));
      return;
    }
    made.plan = Plan(type, made.oid);
    made.binary = type.binary && !options_.as_text;
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

  static void BeText(StoreType& made) {
    constexpr Oid kText = 25;
    made.oid = kText;
    made.binary = false;
    made.unknown = true;
    made.store_sql = "text";
  }

  // The store's type; nullopt when it cannot have one and need not.
  std::optional<Oid> Counterpart(const Type& type) {
    if (!IsDealt(type)) return type.oid;
    if (!options_.as_text) return FindOrCreate(type);
    for (const Oid part : Parts(type)) {
      if (map_.At(part).unknown) return std::nullopt;
    }
    try {
      return FindOrCreate(type);
    } catch (const Error& error) {
      if (error.state() != base::kUndefinedObject) throw;
      return std::nullopt;
    }
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
      node.replace = base.replace;
      return node;
    }
    constexpr Oid kInterval = 1186;
    if (type.oid == kInterval && options_.finite_intervals) node.kind = Kind::kFiniteInterval;
    if (options_.raw_text != RawText::kNone && Parts(type).empty() && node.kind == Kind::kScalar) {
      node.kind = TextKind(type);
      node.replace = options_.raw_text == RawText::kReplace;
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
  TypeOptions options_;
  TypeMap map_;
};

TypeMap EnsureTypes(pg::Connection& store, const std::vector<Type>& source_types,
                    const TypeOptions& options) {
  TypeCreation creation(store, options);
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
