// Arrow batches on their way into one COPY … FROM STDIN (FORMAT binary): columnar's encoding, OIDs
// inside values made the store's, and the connection. Holds one encoded batch. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "columnar/copy_encoder.h"
#include "pg/connection.h"
#include "pg/copy.h"
#include "temporal/transition.h"

namespace arrow {
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::temporal {

class BatchCopy {
 public:
  struct Options {
    bool write_ordinal = false;  // as the first column
    Translations translations;   // one for each column of the schema but `_ordinal`; may be empty
  };
  /// `sql` is a COPY … FROM STDIN (FORMAT binary) of the columns of `schema`.
  BatchCopy(pg::Connection& store, const std::string& sql, std::shared_ptr<arrow::Schema> schema,
            Options options);

  /// Throws what columnar::CopyEncoder::WriteBatch throws, and the store's error for earlier rows.
  void Write(const arrow::RecordBatch& batch);
  /// Rows taken.
  int64_t Finish();
  int64_t bytes() const { return bytes_; }

 private:
  void Translate();

  columnar::CopyEncoder encoder_;
  Options options_;
  bool translates_;
  pg::CopyIn copy_;
  std::string encoded_, translated_;
  int64_t bytes_ = 0;
};

}  // namespace tidemark::temporal
