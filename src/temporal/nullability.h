// NOT NULL as the source has it, on a dataset's current table and the parent that users see;
// history needs none, and a key's columns have theirs from the key. Takes ACCESS EXCLUSIVE locks
// for a moment, and waits two seconds for them at most: then 55P03. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Of how many relations a dataset's column refuses NULLs where it does so wholly.
inline constexpr int kNotNullRelations = 2;

/// By dataset and column: how many of the dataset's relations refuse NULLs in it. Columns that none
/// does are not there.
std::map<std::pair<int, std::string>, int> LoadNotNull(pg::Connection& store, int journal);

/// The source may send NULLs in these columns. In the caller's transaction, which goes on whatever
/// comes of it. True if something was changed.
bool AllowNulls(pg::Connection& store, const Dataset& dataset,
                const std::vector<std::string>& columns);

/// No row has a NULL in these columns at the source. In transactions of its own: the current rows
/// are looked through while readers go on, by a constraint that is dropped again.
///
///     constraint added (not valid) ──► validated ──► NOT NULL set, constraint dropped
///
/// False when heirs of the table still take NULLs in some of them: those are left.
/// Throws 23514 when a row that is kept has a NULL.
bool RefuseNulls(pg::Connection& store, const Dataset& dataset,
                 const std::vector<std::string>& columns);

/// Drops the constraints of a RefuseNulls that was cut short. In transactions of its own.
void DropNullConstraints(pg::Connection& store);

}  // namespace tidemark::temporal
