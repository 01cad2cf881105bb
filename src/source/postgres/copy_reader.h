// A COPY (SELECT …) TO STDOUT (FORMAT binary), pulled as Arrow batches inside a transaction that
// ends with the reader. What is selected, and what the position says, is the caller's. The
// connection can do nothing else meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "columnar/batch_reader.h"
#include "pg/copy.h"
#include "source/postgres/relation_shape.h"
#include "source/reader.h"

namespace tidemark::source {

class CopyReader final : public Reader {
 public:
  /// `transaction` has taken its snapshot. `tail` stands behind the select list: FROM and on; empty
  /// when it is known that there is no row.
  CopyReader(std::shared_ptr<pg::Connection> connection,
             std::unique_ptr<pg::Transaction> transaction, CopyShape shape,
             const std::string& tail, Position position, const ReadOptions& options);
  ~CopyReader() override;

  const RelationShape& shape() const override { return shape_; }
  Step Next(const Limit& limit) override;

 private:
  Step Pull(const Limit& limit);
  Step Finish();

  std::shared_ptr<pg::Connection> connection_;
  std::unique_ptr<pg::Transaction> transaction_;
  RelationShape shape_;
  Position position_;
  int64_t first_ordinal_;
  int64_t next_first_;  // of the next batch
  columnar::BatchReader batches_;
  std::unique_ptr<pg::CopyOut> copy_;
  std::optional<End> end_;
  std::optional<base::Error> error_;
};

/// Begins a read-only transaction whose snapshot holds until its end; adopts the exported
/// `snapshot` unless it is empty.
std::unique_ptr<pg::Transaction> BeginRead(pg::Connection& connection,
                                           const std::string& snapshot);

/// In that transaction before its first query: from here on the relation's columns are those of
/// `relation`, in the catalog as its snapshot has it and for COPY, which looks them up anew. Throws
/// 40001 when they have changed since it was loaded. What cannot be locked (a foreign table, a
/// materialized view, one whose columns are granted one by one) is compared only.
void HoldColumns(pg::Connection& connection, const pg::Relation& relation);

}  // namespace tidemark::source
