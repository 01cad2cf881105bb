// The relations of one dataset in the store: the parent with the upstream's shape, the current
// table, the partitioned history, the view over both and the time-travel functions. DDL only; all
// of it is transactional, so a dataset appears whole or not at all. design.md, section 3.1.
#pragma once

#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Creates tidemark_current.d<id>, not yet attached to anything: a first copy fills it.
void CreateCurrent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream);

/// Builds the key and the copies of the upstream's secondary indexes on the filled current table,
/// and analyzes it. A secondary index that the store cannot build (a function it lacks) is left
/// out and named in the answer.
std::vector<std::string> BuildIndexes(pg::Connection& store, const Dataset& dataset,
                                      const pg::Relation& upstream);

/// Creates parent, history, view and functions and makes the current table a child of the parent.
/// Call inside the transaction that publishes the dataset's first basis, whose tx is `tx_first`.
void Attach(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
            int64_t tx_first);

/// Creates the view of all row versions and the functions that read the dataset at an instant, or
/// makes them anew after its columns or key have changed. Throws 2BP01 when something else depends on
/// the view.
void DefineReading(pg::Connection& store, const Dataset& dataset);

/// Lets readers read the attached dataset.
void GrantReading(pg::Connection& store, const Dataset& dataset);

/// Drops them, before columns that the view shows change. Throws 2BP01 like DefineReading.
void DropReading(pg::Connection& store, const Dataset& dataset);

/// Adds the foreign keys between attached parents, which hold no rows of their own to check: for the
/// catalog only.
void LinkForeignKeys(pg::Connection& store, const std::vector<pg::Relation>& upstream);

/// Removes a current table that was never attached.
void DropUnattached(pg::Connection& store, int dataset_id);

}  // namespace tidemark::temporal
