// What a run of verify has compared so far, as tidemark.verification keeps it: after each chunk, so
// that a run that was cut short goes on behind the last one. Where the store cannot be written to
// (a standby) nothing is kept, and nothing is lost but that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/lsn.h"
#include "capture/verify.h"
#include "capture/verify_cut.h"
#include "capture/verify_server.h"

namespace tidemark::capture {

/// One table's part of a run.
struct RecordedTable {
  TableComparison table;
  int dataset = 0;
  std::vector<std::string> key_columns;  // by which it is cut; empty: it is not
  std::optional<KeyBound> reached;
  bool ended = false;
};

class VerifyRecord {
 public:
  /// A new run over these tables, in place of what was known of them.
  static VerifyRecord Begin(VerifyServer& store, const std::vector<temporal::Dataset>& datasets);
  /// The journal's newest run. `tables` receives its tables, by dataset; none if there is no run.
  static VerifyRecord Continue(VerifyServer& store, int journal,
                               std::vector<RecordedTable>& tables);

  /// Stores how far a table has come.
  void Store(const RecordedTable& table);

 private:
  VerifyRecord(VerifyServer& store, int64_t run) : store_(&store), run_(run) {}
  VerifyServer* store_;
  int64_t run_;  // 0: nothing is kept
};

}  // namespace tidemark::capture
