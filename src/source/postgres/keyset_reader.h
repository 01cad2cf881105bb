// The cursor strategy over PostgreSQL: what was appended after a position, up to a bound below
// which nothing can still be committed. One snapshot, ordered by (cursor, key) as the source
// compares them: operators and collations are the columns' own, values cross as exact text.
//
//   upper bound ─► transactions running now ─► wait until they ended ─► new snapshot ─► COPY
//        B                                        │                       after < row ≤ B
//                                                 └─ some did not: the same rows are read, but the
//                                                    next read begins at `after` again
#pragma once

#include <memory>

#include "source/postgres/copy_reader.h"

namespace tidemark::source {

/// Throws as SourceRelation::ReadSince does, and 0A000 for a cursor type without an order or an
/// overlap. The text of values must be exact under the connection's settings.
std::unique_ptr<Reader> ReadKeyset(const std::shared_ptr<pg::Connection>& shared,
                                   const pg::Relation& relation, const CursorPlan& plan,
                                   const ReadOptions& options, const Limit& limit);

/// Why `cursor` cannot be this relation's cursor; empty if it can.
std::string CursorProblem(const pg::Relation& relation, const std::string& cursor);

}  // namespace tidemark::source
