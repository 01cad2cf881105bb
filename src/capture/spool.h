// Messages of the stream that have to wait: in memory while they are few, beyond that in a file
// without a name, so that the memory that they take does not grow with their number. Written to the
// end, then read once from the beginning. One thread.
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
  /// So many bytes stay in memory.
  explicit Spool(size_t memory_max = 64 * 1024) : memory_max_(memory_max) {}

  struct Message {
    base::Lsn commit_lsn;      // where the commit record of its transaction starts
    uint32_t xid = 0;          // of that transaction
    std::string_view payload;  // valid until the next call
  };
  /// Throws 58030 when the file, which is in the folder for temporary files (TMPDIR, else /tmp),
  /// cannot be written.
  void Write(const Message& message);
  int64_t bytes() const { return bytes_; }
  /// Whether there is a file.
  bool spilled() const { return file_ != nullptr; }

  /// The next message from the beginning, or nullopt at the end. Nothing is written afterwards.
  std::optional<Message> Read();

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  [[noreturn]] void Fail(const char* doing);
  void Open();
  bool Get(void* to, size_t size);

  size_t memory_max_;
  std::string kept_;  // what is not in the file: its last messages
  std::unique_ptr<std::FILE, Close> file_;
  std::string payload_;
  int64_t bytes_ = 0;
  size_t file_left_ = 0, kept_read_ = 0;  // while reading
  bool reading_ = false;
};

}  // namespace tidemark::capture
