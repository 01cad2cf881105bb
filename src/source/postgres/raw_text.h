// Names, labels and comments of a source whose encoding is not known (SQL_ASCII): which of them a
// store, whose text is UTF-8, can take. Pure. Not the values in rows (wire/oid_translation.h).
#pragma once

#include <string>

#include "pg/relation.h"

namespace tidemark::source {

/// Whether the names of the relation and its columns are UTF-8.
bool HasReadableNames(const pg::Relation& relation);
/// Whether the type's name, labels and attributes are.
bool HasReadableNames(const pg::Type& type);

/// '?' for each byte that is not UTF-8.
std::string Readable(std::string text);
/// The comments made readable.
void MakeCommentsReadable(pg::Relation& relation);

}  // namespace tidemark::source
