// A byte stream as lines, pulled: for NDJSON. Holds one block and one line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace arrow {
class Buffer;
}  // namespace arrow
namespace arrow::io {
class InputStream;
}  // namespace arrow::io

namespace tidemark::source {

class LineReader {
 public:
  LineReader(std::shared_ptr<arrow::io::InputStream> input, std::string path);
  ~LineReader();

  /// The next line that is not blank, without its end; false at the end of the stream. Valid until
  /// the next call. Throws 54000 for a line of more than 256 MiB, 58030 when reading fails.
  bool Next(std::string_view& line);

  /// Of the line that Next gave, from 1.
  int64_t number() const { return number_; }

 private:
  bool Refill();

  std::shared_ptr<arrow::io::InputStream> input_;
  std::string path_;
  std::shared_ptr<arrow::Buffer> block_;
  std::string_view window_;  // of block_, not yet given
  std::string line_;         // a line that crosses blocks
  int64_t number_ = 0;
};

}  // namespace tidemark::source
