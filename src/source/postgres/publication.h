// Making the publication of a source that has none yet. Not the judgement of what may be published
// (preflight.h). Manual: CREATE PUBLICATION.
#pragma once

#include <span>
#include <string>

#include "pg/connection.h"
#include "pg/relation.h"

namespace tidemark::source {

/// Publishes exactly `relations`, each without its inheritance children, partitioned ones as
/// their root. One statement: made whole or not at all. Throws the server's refusal: 42501
/// without CREATE on the database or ownership of a table, 42710 if the publication exists.
/// Publishing a table without a usable identity makes UPDATE and DELETE fail on the source, so
/// 55000 is thrown for one, before anything is sent.
void CreatePublication(pg::Connection& connection, const std::string& name,
                       std::span<const pg::Relation> relations);

}  // namespace tidemark::source
