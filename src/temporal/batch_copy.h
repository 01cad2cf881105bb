// Encoded rows (row_encoder.h) on their way into one COPY … FROM STDIN (FORMAT binary), with those
// who look at them on the way. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pg/connection.h"
#include "pg/copy.h"
#include "temporal/put_digest.h"

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
  /// Both live longer than the copy.
  struct Options {
    RowFilter* filter = nullptr;   // for rows with ordinals
    PutDigest* digest = nullptr;  // gets all rows, which have no ordinals then
  };
  /// `sql` is a COPY … FROM STDIN (FORMAT binary).
  BatchCopy(pg::Connection& store, const std::string& sql, Options options);

  /// Whole rows, without header and trailer. Throws the store's error for earlier ones.
  void Write(std::string rows);
  /// Rows taken.
  int64_t Finish();
  int64_t bytes() const { return bytes_; }

 private:
  void Filter(std::string_view rows);

  Options options_;
  pg::CopyIn copy_;
  std::string passed_;
  int64_t bytes_ = 0;
};

}  // namespace tidemark::temporal
