// What a PostgreSQL catalog says of tables and types: the shape a mirror needs. Holds for any
// server from 14 on, source or store. Loaded as of the connection's snapshot; never cached here.
// Manual: "System Catalogs" (pg_class, pg_attribute, pg_type, pg_index, pg_constraint).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/identifier.h"
#include "pg/connection.h"

namespace tidemark::pg {

using Oid = uint32_t;

/// The first OID that initdb does not use: types from here on differ between servers.
inline constexpr Oid kFirstUserOid = 16384;

struct Column {
  int number = 0;  // pg_attribute.attnum
  std::string name;
  Oid type = 0;
  int modifier = -1;
  std::string type_sql;   // schema-qualified where it is not pg_catalog's, with modifier
  std::string collation;  // quoted, schema-qualified; empty when it is the type's default
  bool not_null = false;
  bool generated = false;  // GENERATED ALWAYS AS (…) STORED or VIRTUAL
  std::optional<std::string> comment;
};

struct Index {
  std::string name;
  std::vector<std::string> columns;  // key columns by name; empty name for an expression
  bool unique = false, primary = false, immediate = true, partial = false, valid = true;
  bool replica_identity = false;
  std::string constraint;  // the constraint it backs (p, u or x), empty if none
  std::string definition;  // pg_get_indexdef, schema-qualified table
};

struct ForeignKey {
  std::string name;
  base::QualifiedName target;
  std::string definition;  // pg_get_constraintdef
};

/// pg_class.relreplident.
enum class ReplicaIdentity : char { kDefault = 'd', kNothing = 'n', kFull = 'f', kIndex = 'i' };

struct Relation {
  Oid oid = 0;
  base::QualifiedName name;
  char kind = 'r';         // relkind: r, p, …
  char persistence = 'p';  // relpersistence: p, u, t
  ReplicaIdentity identity = ReplicaIdentity::kDefault;
  std::vector<Column> columns;  // live ones, by attnum
  std::vector<Index> indexes;
  std::vector<ForeignKey> foreign_keys;
  std::optional<std::string> comment;
  int64_t pages = 0;      // size in blocks now, 0 for a partitioned table
  int64_t tuples = -1;    // the planner's estimate, -1 when unknown
  uint64_t file_node = 0;  // pg_class.relfilenode

  const Index* PrimaryKey() const;
  /// The columns by which the stream identifies a row: the replica identity index, the primary
  /// key under DEFAULT, the primary key or nothing under FULL. Empty: no key.
  std::vector<std::string> KeyColumns() const;
  /// Whether UPDATE and DELETE can be published (an identity exists and can be used).
  bool CanPublishUpdates() const;
  const Column* Find(std::string_view column) const;
};

/// The relations with these OIDs, in the order of the OIDs; those that do not exist are left out.
std::vector<Relation> LoadRelations(Connection& connection, std::span<const Oid> oids);

struct TypeAttribute {
  std::string name;
  Oid type = 0;
  std::string type_sql;
  std::string collation;
};

/// A type as far as creating it elsewhere and walking its binary values needs.
struct Type {
  Oid oid = 0;
  base::QualifiedName name;
  char type = 'b';  // typtype: b, c, d, e, r, m, p
  Oid element = 0;  // for true arrays: the element type; 0 otherwise
  Oid array = 0;    // its array type, 0 if none
  Oid base = 0;     // domains: the base type
  bool binary = true;  // has both typsend and typreceive
  std::string extension;         // the extension that owns it, empty if none
  std::vector<std::string> labels;        // enums, in order
  std::vector<TypeAttribute> attributes;  // composites
  std::string domain_definition;  // domains: base type, default, constraints as SQL
  Oid range_subtype = 0;          // ranges and multiranges
  Oid range = 0;                  // multiranges: their range type
  std::string range_options;      // ranges: SUBTYPE = …, … as CREATE TYPE takes it
  std::string multirange_name;    // ranges: the multirange type's own name
};

/// The closure of `oids` over element, base, attribute and range types; each once, a type after
/// every type that it needs.
std::vector<Type> LoadTypes(Connection& connection, std::span<const Oid> oids);

}  // namespace tidemark::pg
