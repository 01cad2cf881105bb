// Rows on their way into one COPY … (FORMAT binary): the wire format and the connection together,
// in chunks. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pg/copy.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

class RowStream {
 public:
  /// `sql` is a COPY … FROM STDIN (FORMAT binary) of so many columns.
  RowStream(pg::Connection& store, const std::string& sql, size_t columns)
      : copy_(store, sql), columns_(static_cast<int16_t>(columns)) {
    writer_.WriteHeader();
  }
  /// Begins a row; its fields are written to the writer, or raw to buffer().
  wire::CopyBinaryWriter& Begin() {
    if (buffer_.size() >= kChunkBytes) Send();
    writer_.WriteRow(columns_);
    return writer_;
  }
  std::string& buffer() { return buffer_; }
  /// Sends the trailer; rows taken.
  int64_t Finish() {
    writer_.WriteTrailer();
    Send();
    return copy_.Finish();
  }

 private:
  static constexpr size_t kChunkBytes = 128 * 1024;
  void Send() {
    copy_.Write(buffer_);
    buffer_.clear();
  }
  pg::CopyIn copy_;
  int16_t columns_;
  std::string buffer_;
  wire::CopyBinaryWriter writer_{buffer_};
};

}  // namespace tidemark::temporal
