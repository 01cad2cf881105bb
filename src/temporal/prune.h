// Ending what history keeps: partitions older than a dataset's retention go whole, and one key's
// values can be erased out of all history. What is asked for below the horizon afterwards is
// refused (72000), never answered with less. design.md, section 3.2; docs/reference/retention.md.
//
//   horizon moved (committed: new statements refuse what is older)
//      ──► every snapshot from before it has ended ──► partitions dropped
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identifier.h"
#include "pg/connection.h"

namespace tidemark::temporal {

/// How far back the datasets of a journal stay readable.
struct Retention {
  std::string journal;  // a mirror's or a dataset's declared name
  std::string span;     // an interval: 90d; empty: for ever
  std::map<std::string, std::string> by_table = {};  // schema.table: its own span
};

struct Pruned {
  base::QualifiedName table;
  int64_t partitions = 0;  // dropped
  bool waits = false;      // older snapshots are still open: a later prune drops the rest
  std::string horizon;     // the oldest readable instant now; empty when nothing was ever pruned
};

/// Prunes the datasets of the journals; of a journal that has captured nothing yet there are none.
/// Waits for older snapshots and for locks until the deadline.
std::vector<Pruned> Prune(pg::Connection& store, const std::vector<Retention>& retentions,
                          base::Deadline deadline, std::stop_token stop);

/// Removes every closed version of the row with this key (columns and values as text), and records
/// that it was done, without the values. The row that is current now stays: its source has it.
/// Returns how many versions went. Throws 42P01 for a table that is not kept, 42703 when the
/// columns are not its key.
int64_t Erase(pg::Connection& store, const base::QualifiedName& table,
              const std::vector<std::pair<std::string, std::string>>& key);

}  // namespace tidemark::temporal
