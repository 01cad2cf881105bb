// Arrow batches on their way into one COPY … FROM STDIN (FORMAT binary): columnar's encoding, OIDs
// inside values made the store's, and the connection. Holds one encoded batch. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "columnar/copy_encoder.h"
#include "pg/connection.h"
#include "pg/copy.h"
#include "temporal/transition.h"

namespace arrow {
class RecordBatch;
class Schema;
}  // namespace arrow

namespace tidemark::temporal {

/// Decides which rows are sent, and when. Rows are in the store's form, complete as COPY BINARY has
/// them.
class RowFilter {
 public:
  virtual ~RowFilter() = default;
  /// The next row, in order; `fields` is what follows its field count and ordinal: int32 length
  /// (-1: NULL), bytes, … Appends to `sent` what is to be sent now, this row or earlier ones.
  virtual void Pass(std::string_view row, std::string_view fields, std::string& sent) = 0;
  /// There are no more rows: appends some of those that were held back; false when there are none.
  virtual bool PassHeld(std::string& sent) = 0;
};

class BatchCopy {
 public:
  struct Options {
    bool write_ordinal = false;  // as the first column
    RowFilter* filter = nullptr;  // lives longer than the copy
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
  void Filter(std::string_view rows);

  columnar::CopyEncoder encoder_;
  Options options_;
  bool translates_;
  pg::CopyIn copy_;
  std::string encoded_, translated_, passed_;
  int64_t bytes_ = 0;
};

}  // namespace tidemark::temporal
