// Which PostgreSQL type takes the values of an Arrow field that another writer chose: a file's, a
// driver's. Types only; the values are foreign_encoder.h's. Pure functions. The table of all types:
// docs/reference/types.md.
#pragma once

#include <cstdint>
#include <string>

#include "columnar/field_type.h"

namespace tidemark::columnar {

/// The column for `field`, whose metadata names no PostgreSQL type; type_sql is filled. A type that
/// wraps another (dictionary, run-end encoded, an extension of an unknown name) counts as what it
/// wraps. Throws 0A000, naming the field, for a type with no PostgreSQL type: unions, and structs
/// with two fields of one name.
PostgresColumn ColumnOfForeign(const arrow::Field& field);

/// A built-in type as format_type shows it, modifier and brackets included; empty for a type that
/// is not in type_oid.h.
std::string TypeSqlOf(uint32_t type, int32_t modifier);

}  // namespace tidemark::columnar
