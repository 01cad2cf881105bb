#include "source/files/line_reader.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "source/files/file_format.h"

namespace tidemark::source {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;
constexpr size_t kLineBytesMax = size_t{256} << 20;
constexpr base::SqlState kProgramLimitExceeded{"54000"};

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

LineReader::LineReader(std::shared_ptr<arrow::io::InputStream> input, std::string path)
    : input_(std::move(input)), path_(std::move(path)) {}

LineReader::~LineReader() = default;

bool LineReader::Refill() {
  auto block = input_->Read(kBlockBytes);
  CheckFile(block.status(), path_);
  block_ = std::move(block).ValueUnsafe();
  window_ = {reinterpret_cast<const char*>(block_->data()), static_cast<size_t>(block_->size())};
  return !window_.empty();
}

bool LineReader::Next(std::string_view& line) {
  for (;;) {
    line_.clear();
    bool ended = false;
    for (;;) {
      if (window_.empty() && !Refill()) {
        ended = true;
        break;
      }
      const size_t end = window_.find('\n');
      const std::string_view part = window_.substr(0, end);
      if (end != std::string_view::npos && line_.empty()) {
        line = part;
        window_.remove_prefix(end + 1);
        break;
      }
      line_ += part;
      if (line_.size() > kLineBytesMax) {
        throw base::Error(kProgramLimitExceeded,
                          fmt::format("line {} of file \"{}\" is too long", number_ + 1, path_));
      }
      window_.remove_prefix(end == std::string_view::npos ? part.size() : end + 1);
      line = line_;
      if (end != std::string_view::npos) break;
    }
    if (ended && line_.empty()) return false;
    ++number_;
    if (ended) line = line_;
    if (!IsBlank(line)) return true;
  }
}

}  // namespace tidemark::source
