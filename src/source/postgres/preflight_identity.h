// Preflight's judgement of how the stream will identify a table's rows. Pure: reads only what
// pg::LoadRelations has loaded. Manual: ALTER TABLE, "REPLICA IDENTITY".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pg/relation.h"

namespace tidemark::source {

/// Why the source would refuse UPDATE and DELETE if the table were published, as words that follow
/// "it has" or stand alone ("no primary key", "replica identity NOTHING"); nullopt if it would not.
std::optional<std::string> IdentityFault(const pg::Relation& relation);

/// A key that holds a generated column: the source lets updates pass, but sends no key with them.
bool HasGeneratedKey(const pg::Relation& relation);

/// Whether every column of the identity is among `columns`; FULL needs all but generated ones.
bool CoversIdentity(const pg::Relation& relation, const std::vector<std::string>& columns);

/// Whether an update or delete of a row in partition `leaf` carries what identifies it in `root`.
bool SendsKeyOf(const pg::Relation& leaf, const pg::Relation& root);

}  // namespace tidemark::source
