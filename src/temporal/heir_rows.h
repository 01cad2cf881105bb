// The SQL that adds to a dataset's own rows at an instant those of the tables that inherit from it:
// each heir's row versions, over the txs in which it was one. A column of an heir is found by its
// name at the end of those txs, since a column that is inherited has one name in the whole family;
// what it is called by now, or whether it is gone, makes no difference. Reads only. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

class HeirRows {
 public:
  /// Of `dataset`, whose columns are in the order in which they are to be read.
  HeirRows(pg::Connection& store, const Dataset& dataset);

  /// No table inherits, or ever did.
  bool empty() const { return stretches_.empty(); }
  /// ` UNION ALL SELECT …` for the rows as of tx `x`, an SQL expression: a condition on `x` alone
  /// keeps out the heirs of other txs, and leaves nothing of them in a plan that knows `x`.
  std::string AsOf(const std::string& x) const;

 private:
  struct Column {
    std::string value;        // of the heir's row versions; NULL where they have none
    int64_t null_before = 0;  // as DatasetColumn's
  };
  /// One heir over txs [from, to).
  struct Stretch {
    std::string versions;
    int64_t from = 0;
    std::optional<int64_t> to;
    std::vector<Column> columns;
  };

  std::vector<Stretch> stretches_;
};

}  // namespace tidemark::temporal
