// The tables of one dataset in the store: the parent with the upstream's shape, the current table
// and the partitioned history; what reads them at an instant is reading.h's. DDL only; all of it is
// transactional, so a dataset appears whole or not at all. design.md, section 3.1.
#pragma once

#include <vector>

#include "pg/connection.h"
#include "pg/relation.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

/// Creates tidemark_current.d<id>, not yet attached to anything: a first copy fills it. Its rows
/// begin at `tx`, which need not be said of each until BuildIndexes.
void CreateCurrent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
                   int64_t tx);

/// Ends the filling: builds the key and the copies of the upstream's secondary indexes, and
/// analyzes the table. A secondary index that the store cannot build (a function it lacks) is left
/// out and named in the answer.
std::vector<std::string> BuildIndexes(pg::Connection& store, const Dataset& dataset,
                                      const pg::Relation& upstream);

/// Creates parent, history, view and functions and makes the current table a child of the parent.
/// Call inside the transaction that publishes the dataset's first basis, whose tx is `tx_first`.
void Attach(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
            int64_t tx_first);

/// Adds the foreign keys between attached parents, which hold no rows of their own to check: for
/// the catalog only.
void LinkForeignKeys(pg::Connection& store, const std::vector<pg::Relation>& upstream);

/// Removes a current table that was never attached.
void DropUnattached(pg::Connection& store, int dataset_id);

}  // namespace tidemark::temporal
