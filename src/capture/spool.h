// Messages of the stream that have to wait, in a file without a name: the memory that they take does
// not grow with their number. Written to the end, then read once from the beginning. One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/lsn.h"

namespace tidemark::capture {

class Spool {
 public:
  /// In the folder for temporary files (TMPDIR, else /tmp). Throws 58030.
  Spool();

  struct Message {
    base::Lsn commit_lsn;      // where the commit record of its transaction starts
    uint32_t xid = 0;          // of that transaction
    std::string_view payload;  // valid until the next call
  };
  /// Throws 58030 when the disk is full.
  void Write(const Message& message);
  int64_t bytes() const { return bytes_; }

  /// The next message from the beginning, or nullopt at the end. Nothing is written afterwards.
  std::optional<Message> Read();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  [[noreturn]] void Fail(const char* doing);

  std::unique_ptr<std::FILE, Close> file_;
  std::string payload_;
  int64_t bytes_ = 0;
  bool reading_ = false;
};

}  // namespace tidemark::capture
