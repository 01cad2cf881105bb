// The shape of a relation whose rows arrive in Arrow types of another writer's choice: drivers and
// files.
#pragma once

#include <memory>
#include <string>

#include "source/reader.h"

namespace tidemark::source {

/// The columns that the fields become, and the schema with `_ordinal`. Throws 0A000 naming every
/// field that has no type in PostgreSQL, 42701 for a name that stands twice or is reserved, 42601
/// for an empty name.
RelationShape ShapeOfFields(const std::string& relation,
                            const std::shared_ptr<arrow::Schema>& fields);

}  // namespace tidemark::source
