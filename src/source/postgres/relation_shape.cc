#include "source/postgres/relation_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/identifier.h"
#include "columnar/type_oid.h"

namespace tidemark::source {

namespace {

constexpr const char* kResolve = R"sql(
SELECT c.oid, c.relkind
FROM pg_catalog.pg_class c
WHERE c.oid = pg_catalog.to_regclass(
  CASE WHEN pg_catalog.cardinality(pg_catalog.parse_ident($1)) = 1 THEN 'public.' || $1 ELSE $1 END)
)sql";

constexpr const char* kDomains = R"sql(
SELECT t.typbasetype, t.typtypmod FROM pg_catalog.pg_type t WHERE t.oid = $1::oid
)sql";

constexpr std::string_view kSelectable = "rpvmf";  // relkinds: tables, views, foreign tables

// Types whose every value an Arrow array holds: columnar's table without its third column.
bool ArrowHoldsAll(uint32_t type, bool text_is_utf8) {
  switch (type) {
    case columnar::kBool:
    case columnar::kInt2:
    case columnar::kInt4:
    case columnar::kInt8:
    case columnar::kFloat4:
    case columnar::kFloat8:
    case columnar::kBytea:
    case columnar::kUuid:
      return true;
    case columnar::kText:
    case columnar::kVarchar:
    case columnar::kBpchar:
    case columnar::kName:
    case columnar::kJson:
    case columnar::kJsonb:
      return text_is_utf8;
    default:
      return false;
  }
}

// Whether all parts of `type` can be sent as bytes.
bool HasBinary(pg::Oid oid, const std::vector<pg::Type>& types) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const pg::Type& t) { return t.oid == oid; });
  if (found == types.end() || !found->binary) return false;
  for (const pg::Oid part : {found->element, found->base, found->range_subtype, found->range}) {
    if (part != 0 && !HasBinary(part, types)) return false;
  }
  return std::all_of(found->attributes.begin(), found->attributes.end(),
                     [&](const auto& a) { return HasBinary(a.type, types); });
}

// A domain is sent as the type below all domains, with the innermost modifier that is set.
void UnwrapDomain(pg::Connection& connection, const std::vector<pg::Type>& types,
                  columnar::PostgresColumn& column) {
  pg::Oid oid = column.type;
  for (;;) {
    const auto found =
        std::find_if(types.begin(), types.end(), [&](const pg::Type& t) { return t.oid == oid; });
    if (found == types.end() || found->type != 'd') return;
    const auto row = connection.Execute(kDomains, {std::to_string(oid)});
    oid = found->base;
    column.base_type = oid;
    if (const auto modifier = static_cast<int32_t>(row.int64(0, 1)); modifier != -1) {
      column.modifier = modifier;
    }
  }
}

}  // namespace

pg::Relation ResolveRelation(pg::Connection& connection, const std::string& name) {
  const auto row = connection.Execute(kResolve, {name});
  if (row.rows() == 0) {
    throw base::Error(base::kUndefinedTable, fmt::format("relation \"{}\" does not exist", name));
  }
  if (kSelectable.find(row.text(0, 1).at(0)) == std::string_view::npos) {
    throw base::Error(base::kWrongObjectType,
                      fmt::format("\"{}\" is not a table or view", name));
  }
  const pg::Oid oid = static_cast<pg::Oid>(row.int64(0, 0));
  auto relations = pg::LoadRelations(connection, std::span(&oid, 1));
  if (relations.empty()) {
    throw base::Error(base::kUndefinedTable, fmt::format("relation \"{}\" does not exist", name));
  }
  return std::move(relations.front());
}

CopyShape ShapeOf(pg::Connection& connection, const pg::Relation& relation) {
  CopyShape result;
  std::vector<pg::Oid> oids;
  for (const pg::Column& column : relation.columns) oids.push_back(column.type);
  result.shape.types = pg::LoadTypes(connection, oids);
  const bool utf8 = connection.parameter("server_encoding") != "SQL_ASCII";

  std::vector<columnar::PostgresColumn> sent;
  for (const pg::Column& column : relation.columns) {
    ShapeColumn& to = result.shape.columns.emplace_back();
    to.column = {.name = column.name,
                 .type = column.type,
                 .modifier = column.modifier,
                 .type_sql = column.type_sql};
    to.source_type = column.type_sql;
    to.nullable = !column.not_null;
    if (!result.select_list.empty()) result.select_list += ", ";
    result.select_list += base::QuoteIdentifier(column.name);
    to.as_text = !HasBinary(column.type, result.shape.types);
    if (to.as_text) {
      result.select_list += "::pg_catalog.text";
      sent.push_back({.name = column.name, .type = columnar::kText, .type_sql = "text"});
      continue;
    }
    UnwrapDomain(connection, result.shape.types, to.column);
    if (!ArrowHoldsAll(to.column.sent_as(), utf8)) to.column.carry = columnar::Carry::kPostgres;
    sent.push_back(to.column);
  }
  result.shape.schema = columnar::SchemaOf(sent);
  return result;
}

}  // namespace tidemark::source
