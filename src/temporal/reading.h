// What reads one attached dataset at an instant: the view of all row versions and the time-travel
// functions, which the planner inlines. DDL only, inside the caller's transaction. design.md,
// section 3.1; temporal-sql.md.
#pragma once

#include <set>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Creates the view of all row versions and the functions that read the dataset at an instant, or
/// makes them anew after its columns or key have changed. Throws 2BP01 when something else depends
/// on the view.
void DefineReading(pg::Connection& store, const Dataset& dataset);

/// Makes the functions anew that read `parents`, and all that they inherit from, at an instant: the
/// rows of their heirs are in them (heir_rows.h). Where a dataset has or had heirs there are also
/// functions for its own rows: only_rows, only_as_of_tx and the others by their names.
void DefineReadingOfParents(pg::Connection& store, int journal, std::set<int> parents);

/// The same for whatever shows, or has shown, the rows of `heir`: after its columns have changed.
void DefineReadingThroughParents(pg::Connection& store, const Dataset& heir);

/// Lets readers read the attached dataset.
void GrantReading(pg::Connection& store, const Dataset& dataset);

/// Drops them, before columns that the view shows change. Throws 2BP01 like DefineReading.
void DropReading(pg::Connection& store, const Dataset& dataset);

}  // namespace tidemark::temporal
