// The table that is measured: public.ledger, six columns of common types, a bigint key from 1 on,
// and the row 0 as a marker whose column `a` says how far a reader has come.
#pragma once

#include <cstdint>
#include <string>

#include "base/lsn.h"
#include "pg/connection.h"

namespace tidemark::bench {

/// Creates the empty table, without its key unless `keyed`.
void CreateLedger(pg::Connection& on, bool keyed);
/// Fills it with the marker and `rows` rows, vacuums it and publishes it as `tidemark`.
void FillLedger(pg::Connection& source, int64_t rows);

/// Creates public.side_0, side_1, …: keyed, and empty.
void CreateSides(pg::Connection& on, int64_t tables);
/// Creates public.tally, empty: without a key, its replica identity the whole row.
void CreateTally(pg::Connection& on);
/// Fills it with `rows` rows of ten values and publishes it, too.
void FillTally(pg::Connection& source, int64_t rows);

/// What is written to be drained later, without waiting for the disk.
struct Backlog {
  int64_t rows = 0;    // of the ledger, or of the tally where that is written to
  int64_t single = 0;  // transactions that update one random row each
  int64_t bulk = 0;    // transactions that update many rows, scattered over the table
  int64_t bulk_rows = 1000;
  int64_t sides = 0;  // tables that are published, too, and never change
  bool inserts = false;  // both insert new rows instead
  bool tally = false;    // both update rows of the tally, each by one of the other values
  int64_t bulk_changes() const { return bulk * bulk_rows; }
};
void WriteSingle(pg::Connection& source, const Backlog& backlog, int64_t seed);
void WriteBulk(pg::Connection& source, const Backlog& backlog, int64_t seed);

/// Commits a new value of the marker, durably; the position where that commit has ended.
base::Lsn WriteMarker(pg::Connection& source, int64_t value);
/// True when a reader of `on` sees the marker's value.
bool MarkerReached(pg::Connection& on, int64_t value);

/// Count and hash of all rows' contents.
std::string LedgerContents(pg::Connection& on);
std::string TallyContents(pg::Connection& on);

}  // namespace tidemark::bench
