// The source's column types in the store: creates those the store lacks and says how binary values
// of each must be changed on the way. Not the values themselves (wire/oid_translation.h), and not
// the reading of catalogs (pg/relation.h). One connection, one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "wire/oid_translation.h"

namespace tidemark::temporal {

/// One source type as it stands in the store.
struct StoreType {
  pg::Oid oid = 0;
  wire::TypeNode plan;  // for wire::Translate
  wire::TypeNode text_plan;  // the same for the value as text
  /// Both servers can send and receive it as bytes, all its parts included. Where false, columns
  /// of the type must travel as text.
  bool binary = true;
  bool unknown = false;  // the store has no such type: it is text there
  std::string source_sql;  // the name as format_type shows it in the source, without modifier
  std::string store_sql;   // the same in the store; differs when an extension lives elsewhere
};

/// What is done about text that a source sends in no encoding that is known.
enum class RawText {
  kNone,     // it sends none: the server has converted, and so looked at, all of it
  kRefuse,   // what is not UTF-8 throws 22021
  kReplace,  // '?' takes the place of each byte that is not
};

struct TypeOptions {
  RawText raw_text = RawText::kNone;
  /// The source has infinite intervals and the store has not: there they throw 22008.
  bool finite_intervals = false;
  /// The source sends all values as text. A type that the store cannot have, or that has such a
  /// part, is text there.
  bool as_text = false;
};

class TypeMap {
 public:
  bool Contains(pg::Oid source_oid) const { return types_.contains(source_oid); }
  /// Throws 42704 for an OID that was not among the types ensured.
  const StoreType& At(pg::Oid source_oid) const;
  /// `type_sql`, a column's or attribute's type as the source's format_type shows it (modifier
  /// and brackets included), as the store must be told it.
  std::string StoreSql(pg::Oid source_oid, std::string_view type_sql) const;

 private:
  friend class TypeCreation;
  std::map<pg::Oid, StoreType> types_;  // by source OID
};

/// Creates in the store what it lacks of `source_types` (as pg::LoadTypes gives them: closed over
/// their parts, each after its parts): schemas, extensions, enums, domains, composites, ranges with
/// their multiranges; arrays come with their elements. Types are matched by schema-qualified name,
/// those of an extension by extension and name. Domains are made without their constraints, since
/// rows were checked upstream and must not be refused here. A type that exists and is equal is
/// reused; an enum gains the labels it lacks, a composite those attributes that are new at its end.
///
/// Idempotent. Inside a transaction new labels of an older enum are usable only after its commit.
/// Throws 42710 for a type that exists and differs, 42704 when the store has no such extension or
/// base type. `store` needs an empty search_path. Cost: about two round trips a user-defined type.
TypeMap EnsureTypes(pg::Connection& store, const std::vector<pg::Type>& source_types,
                    const TypeOptions& options = {});

}  // namespace tidemark::temporal
