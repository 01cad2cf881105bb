// A PostgreSQL relation as its COPY will send it: the columns, how each stands in Arrow, and the
// select list. Reads the catalog only. The connection's search_path must be empty, so that names
// are qualified.
#pragma once

#include <string>

#include "pg/connection.h"
#include "pg/relation.h"
#include "source/reader.h"

namespace tidemark::source {

/// The relation that `name` means to SQL, a missing schema being public. Throws 42P01 when there is
/// none, 42809 for something that cannot be selected from, and what a malformed name gives.
pg::Relation ResolveRelation(pg::Connection& connection, const std::string& name);

struct CopyShape {
  RelationShape shape;
  std::string select_list;  // quoted, in the order of shape.columns
};

/// Every column, generated ones included. A type whose values Arrow cannot all hold is carried as
/// PostgreSQL's binary value, so no value is ever refused; a type without a binary form as text.
CopyShape ShapeOf(pg::Connection& connection, const pg::Relation& relation);

}  // namespace tidemark::source
