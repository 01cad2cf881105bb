#include "temporal/type_definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/identifier.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using base::QuoteLiteral;
using pg::Type;
using pg::TypeAttribute;

namespace {

constexpr const char* kSchema = R"sql(
CREATE SCHEMA IF NOT EXISTS {}
)sql";

void EnsureSchema(pg::Connection& store, const std::string& schema) {
  store.Execute(fmt::format(kSchema, QuoteIdentifier(schema)));
}

constexpr const char* kExtension = R"sql(
SELECT a.installed_version IS NOT NULL, v.schema
FROM pg_catalog.pg_available_extensions a
JOIN pg_catalog.pg_available_extension_versions v
  ON v.name = a.name AND v.version = a.default_version
WHERE a.name = $1
UNION ALL
SELECT true, NULL FROM pg_catalog.pg_extension WHERE extname = $1
)sql";

constexpr const char* kCreateExtension = R"sql(
CREATE EXTENSION IF NOT EXISTS {} {} CASCADE
)sql";

}  // namespace

void EnsureExtension(pg::Connection& store, const std::string& extension,
                     const std::string& schema) {
  const auto rows = store.Execute(kExtension, {extension});
  if (rows.rows() == 0) {
    throw Error(base::kUndefinedObject,
                fmt::format("extension \"{}\" is not available in the store", extension))
        .Hint("Install the extension's files on the store's server.");
  }
  for (int i = 0; i < rows.rows(); ++i) {
    if (rows.boolean(i, 0)) return;
  }
  const bool chooses_schema = !rows.is_null(0, 1);
  if (!chooses_schema) EnsureSchema(store, schema);
  store.Execute(fmt::format(kCreateExtension, QuoteIdentifier(extension),
                            chooses_schema ? "" : "SCHEMA " + QuoteIdentifier(schema)));
}

// ---- create

namespace {

constexpr const char* kCreateEnum = R"sql(
CREATE TYPE {} AS ENUM ({})
)sql";

void CreateEnum(pg::Connection& store, const Type& type) {
  std::vector<std::string> labels;
  for (const auto& label : type.labels) labels.push_back(QuoteLiteral(label));
  store.Execute(fmt::format(kCreateEnum, type.name.Quoted(), fmt::join(labels, ", ")));
}

constexpr const char* kCreateDomain = R"sql(
CREATE DOMAIN {} AS {}
)sql";

void CreateDomain(pg::Connection& store, const Type& type, const TypeMap& parts) {
  store.Execute(fmt::format(kCreateDomain, type.name.Quoted(),
                            parts.StoreSql(type.base, type.domain_definition)));
}

std::string AttributeSql(const TypeAttribute& attribute, const TypeMap& parts) {
  const std::string type_sql = parts.StoreSql(attribute.type, attribute.type_sql);
  if (attribute.collation.empty()) {
    return fmt::format("{} {}", QuoteIdentifier(attribute.name), type_sql);
  }
  return fmt::format("{} {} COLLATE {}", QuoteIdentifier(attribute.name), type_sql,
                     attribute.collation);
}

constexpr const char* kCreateComposite = R"sql(
CREATE TYPE {} AS ({})
)sql";

void CreateComposite(pg::Connection& store, const Type& type, const TypeMap& parts) {
  std::vector<std::string> attributes;
  for (const auto& attribute : type.attributes) {
    attributes.push_back(AttributeSql(attribute, parts));
  }
  store.Execute(fmt::format(kCreateComposite, type.name.Quoted(), fmt::join(attributes, ", ")));
}

constexpr const char* kCreateRange = R"sql(
CREATE TYPE {} AS RANGE (SUBTYPE = {}, MULTIRANGE_TYPE_NAME = {})
)sql";

void CreateRange(pg::Connection& store, const Type& type, const TypeMap& parts) {
  constexpr std::string_view kSubtype = "SUBTYPE = ";
  std::string_view options = type.range_options;
  options.remove_prefix(std::min(kSubtype.size(), options.size()));
  const base::QualifiedName multirange{type.name.schema, type.multirange_name};
  store.Execute(fmt::format(kCreateRange, type.name.Quoted(),
                            parts.StoreSql(type.range_subtype, options), multirange.Quoted()));
}

}  // namespace

void CreateType(pg::Connection& store, const Type& type, const TypeMap& parts) {
  if (std::string_view("edcr").find(type.type) == std::string_view::npos) {
    throw Error(base::kUndefinedObject,
                fmt::format("type {} cannot be created in the store: it belongs to no extension",
                            type.name.Display()))
        .Hint("Create the type in the store by the means that created it in the source.");
  }
  EnsureSchema(store, type.name.schema);
  if (type.type == 'e') CreateEnum(store, type);
  if (type.type == 'd') CreateDomain(store, type, parts);
  if (type.type == 'c') CreateComposite(store, type, parts);
  if (type.type == 'r') CreateRange(store, type, parts);
}

// ---- adapt

namespace {

Error Differs(const Type& type, std::string how) {
  return Error(base::kDuplicateObject,
               fmt::format("type {} already exists in the store and differs from the source's",
                           type.name.Display()))
      .Detail(std::move(how));
}

// Those of `labels` that are in `others`, in order.
std::vector<std::string> Shared(const std::vector<std::string>& labels,
                                const std::vector<std::string>& others) {
  std::vector<std::string> shared;
  for (const auto& label : labels) {
    if (std::find(others.begin(), others.end(), label) != others.end()) shared.push_back(label);
  }
  return shared;
}

constexpr const char* kAddLabel = R"sql(
ALTER TYPE {} ADD VALUE IF NOT EXISTS {} {}
)sql";

// A label the source has lost, or calls by another name now, stays, since history may hold it; the
// new name is a label of its own, and whoever reads the type's tables whole again finds their rows
// changed.
void AdaptEnum(pg::Connection& store, const Type& type, const Type& existing) {
  const auto shared = Shared(existing.labels, type.labels);
  if (shared != Shared(type.labels, existing.labels)) {
    throw Differs(type, "Its labels stand in another order.");
  }
  std::string place = existing.labels.empty() ? "" : "BEFORE " + QuoteLiteral(existing.labels[0]);
  for (const auto& label : type.labels) {
    if (std::find(shared.begin(), shared.end(), label) == shared.end()) {
      store.Execute(fmt::format(kAddLabel, type.name.Quoted(), QuoteLiteral(label), place));
    }
    place = "AFTER " + QuoteLiteral(label);
  }
}

constexpr const char* kAddAttribute = R"sql(
ALTER TYPE {} ADD ATTRIBUTE {}
)sql";

void AdaptComposite(pg::Connection& store, const Type& type, const Type& existing,
                    const TypeMap& parts) {
  if (existing.attributes.size() > type.attributes.size()) {
    throw Differs(type, "It has more attributes.");
  }
  for (size_t i = 0; i < type.attributes.size(); ++i) {
    const auto& wanted = type.attributes[i];
    if (i >= existing.attributes.size()) {
      store.Execute(fmt::format(kAddAttribute, type.name.Quoted(), AttributeSql(wanted, parts)));
      continue;
    }
    const auto& found = existing.attributes[i];
    if (found.name != wanted.name || found.type != parts.At(wanted.type).oid ||
        found.type_sql != parts.StoreSql(wanted.type, wanted.type_sql)) {
      throw Differs(type, fmt::format("Attribute {} is \"{}\" {} instead of \"{}\" {}.", i + 1,
                                      found.name, found.type_sql, wanted.name, wanted.type_sql));
    }
  }
}

}  // namespace

void AdaptType(pg::Connection& store, const Type& type, pg::Oid store_oid, const TypeMap& parts) {
  Type existing;
  for (auto& loaded : pg::LoadTypes(store, std::vector<pg::Oid>{store_oid})) {
    if (loaded.oid == store_oid) existing = std::move(loaded);
  }
  if (existing.type != type.type) throw Differs(type, "It is a type of another kind.");
  switch (type.type) {
    case 'e':
      return AdaptEnum(store, type, existing);
    case 'c':
      return AdaptComposite(store, type, existing, parts);
    case 'd':
      if (existing.base != parts.At(type.base).oid ||
          existing.domain_definition != parts.StoreSql(type.base, type.domain_definition)) {
        throw Differs(type, fmt::format("It is a domain over {} instead of {}.",
                                        existing.domain_definition, type.domain_definition));
      }
      return;
    case 'r':
      if (existing.range_subtype != parts.At(type.range_subtype).oid) {
        throw Differs(type, "It is a range over another type.");
      }
      return;
    default:
      return;
  }
}

}  // namespace tidemark::temporal
