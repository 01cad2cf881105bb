// Arrow batches as rows that the store takes in COPY … (FORMAT binary): columnar's encoding, with
// the OIDs inside values made the store's. One thread.
#pragma once

#include <memory>
#include <string>

#include "columnar/copy_encoder.h"
#include "temporal/transition.h"

namespace arrow {
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::temporal {

class RowEncoder {
 public:
  struct Options {
    bool write_ordinal = false;  // as the first column
    Translations translations;   // one for each column of the schema but `_ordinal`; may be empty
  };
  RowEncoder(std::shared_ptr<arrow::Schema> schema, Options options);

  /// The rows of `batch`, without header and trailer. Throws what columnar::CopyEncoder::WriteBatch
  /// throws.
  std::string Encode(const arrow::RecordBatch& batch);

 private:
  std::string Translated(std::string rows) const;

  columnar::CopyEncoder encoder_;
  Options options_;
  bool translates_;
  size_t bytes_before_ = 0;  // of the batch before
};

}  // namespace tidemark::temporal
