// Does the mirror hold what the source holds? Compares both, table by table, each at one consistent
// point: a temporary slot on the source gives position L and the snapshot that shows exactly the
// commits up to L; the mirror is read as of L, once it has received that far. A table is read in
// chunks of its key, one query a side at a time; how far it has come is kept in the store
// (verify_record.h), so that a run that was cut short goes on there, at a newer point. Writes
// nothing else. Two connections work at the same time, one thread each; memory does not grow with
// the tables. docs/reference/verify.md says what is then proved.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/identifier.h"
#include "base/lsn.h"

namespace tidemark::capture {

struct RowDifference {
  enum class Kind { kMissingInMirror, kOnlyInMirror, kDifferentRow };
  Kind kind = Kind::kDifferentRow;
  /// The key columns' values as a row literal, `(1,x)`; the whole row where there is no key. Cut
  /// to 200 characters.
  std::string key;
  /// The columns whose values differ; only for kDifferentRow.
  std::vector<std::string> columns;

  /// "key (1,x): different row (columns a, b)"
  std::string Describe() const;
};

struct TableComparison {
  base::QualifiedName name;
  int64_t source_count = 0;
  int64_t mirror_count = 0;
  bool equal = false;
  /// Why nothing can be said about the table; empty when it was compared.
  std::string not_compared;
  /// At most VerifyRequest::differences_max, in no particular order.
  std::vector<RowDifference> differences;
  /// Where the source stood for its first chunk and for its newest one. The same, unless the table
  /// was interrupted in its middle; and so many points there were.
  base::Lsn first_position, position;
  int segments = 0;
  int64_t chunks = 0;
};

struct Verification {
  base::Lsn position;  // the newest one
  std::vector<TableComparison> tables;
  /// How many tables an earlier run had left for this one; only with VerifyRequest::resume.
  size_t continued = 0;
  /// True when no compared table differs.
  bool Equal() const;
};

struct VerifyRequest {
  std::string source_dsn;
  std::string store_dsn;
  int journal = 0;
  std::vector<base::QualifiedName> only;  // empty: every attached dataset of the journal
  size_t differences_max = 10;
  int64_t chunk_rows = 50'000;
  std::chrono::milliseconds pause{0};  // after each chunk
  /// Goes on with the newest run over this journal; what that has finished is taken as it said.
  bool resume = false;
  /// A table whose turn comes later than this gets a point of its own: an old one keeps the source
  /// from cleaning up.
  std::chrono::seconds point_age_max{300};
  base::Deadline deadline = base::Deadline::Never();  // for all of it
  std::stop_token stop;
  std::function<void(const TableComparison&)> on_table;  // after each table; may be empty
  std::function<void(const TableComparison&)> on_chunk;  // after each chunk; may be empty
};

/// Throws 57014 after the deadline (also when the mirror does not get that far), 42P01 when `only`
/// names something that is not mirrored, and what the source refuses. Leaves nothing behind on the
/// source. Cost: one scan of each table on either side, by its key; a chunk that differs is read
/// about four times more.
Verification Verify(const VerifyRequest& request);

}  // namespace tidemark::capture
