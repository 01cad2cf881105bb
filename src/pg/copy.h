// COPY … FROM STDIN and COPY … TO STDOUT as objects. Each borrows its connection, which can do
// nothing else meanwhile. Bytes are whatever format the statement names; wire/ knows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pg/connection.h"

namespace tidemark::pg {

/// Sends rows into the server. Finish() makes them count; the destructor without it aborts.
class CopyIn {
 public:
  /// `sql` is a COPY … FROM STDIN statement.
  CopyIn(Connection& connection, std::string_view sql);
  CopyIn(const CopyIn&) = delete;
  CopyIn& operator=(const CopyIn&) = delete;
  ~CopyIn();
  /// Queues bytes; blocks only when the line is full. Row boundaries need not be kept.
  void Write(std::string_view bytes);
  /// Ends the copy; rows taken. Throws the server's error for the first bad row.
  int64_t Finish();

 private:
  void Abort() noexcept;
  Connection* connection_;
  std::string sql_;
  size_t unflushed_ = 0;
};

/// Takes rows from the server, one buffer at a time.
class CopyOut {
 public:
  /// `sql` is a COPY … TO STDOUT statement.
  CopyOut(Connection& connection, std::string_view sql);
  CopyOut(const CopyOut&) = delete;
  CopyOut& operator=(const CopyOut&) = delete;
  ~CopyOut();
  /// The next buffer (one row, or header or trailer with it), valid until the next call; nullopt
  /// when the server has sent everything and confirmed it.
  std::optional<std::string_view> Next();
  /// Rows that the server says it sent; once Next has returned nullopt.
  int64_t rows() const { return rows_; }

 private:
  Connection* connection_;
  std::string sql_;
  char* buffer_ = nullptr;
  bool done_ = false;
  int64_t rows_ = 0;
};

}  // namespace tidemark::pg
