// Defining one type in the store as the source has it: the CREATE, ALTER and comparison of each
// kind. Used by types.cc only, which decides the order and what is matched with what.
#pragma once

#include <string>

#include "pg/connection.h"
#include "pg/relation.h"
#include "temporal/types.h"

namespace tidemark::temporal {

/// Installs the extension, in `schema` unless it chooses its own, where the store lacks it. Throws
/// 42704 when the store's server does not have it available.
void EnsureExtension(pg::Connection& store, const std::string& extension,
                     const std::string& schema);

/// Creates `type` and its schema. Its parts must be in `parts`. Throws 42704 for a base type, since
/// only an extension can bring one.
void CreateType(pg::Connection& store, const pg::Type& type, const TypeMap& parts);

/// Makes the store's type `store_oid` take every value that `type` can have; throws 42710 when
/// that cannot be done by adding labels or attributes.
void AdaptType(pg::Connection& store, const pg::Type& type, pg::Oid store_oid,
               const TypeMap& parts);

}  // namespace tidemark::temporal
