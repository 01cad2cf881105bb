// Preflight's judgement of column types: which values mean something only inside the source, and
// which types the store can never have. Used by preflight_table.cc only.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "pg/connection.h"
#include "pg/relation.h"
#include "source/postgres/preflight.h"

namespace tidemark::source {

struct TypeFault {
  std::string what;
  std::string fix;
  base::SqlState state;
  bool unknown = false;  // no more than that the store lacks it
};

/// What is wrong with the types of all carried columns, answered per type. Three to ten round
/// trips when built, none after.
class TypeFaults {
 public:
  /// `store` may be null: what depends on it is then not judged.
  TypeFaults(pg::Connection& source, pg::Connection* store, std::span<const PublishedTable> tables);
  /// The fault of the type or of any of its parts; nullptr if it is fit.
  const TypeFault* Find(pg::Oid type) const;

 private:
  std::map<pg::Oid, TypeFault> faults_;
};

}  // namespace tidemark::source
