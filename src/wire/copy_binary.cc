#include "wire/copy_binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tidemark::wire {

namespace {

constexpr std::string_view kSignature("PGCOPY\n\xff\r\n\0", 11);
constexpr size_t kFixedHeaderSize = kSignature.size() + 4 + 4;
// A reader may ignore flags 0 to 15 but must refuse a stream with any other.
constexpr uint32_t kCriticalFlags = 0xffff0000;
constexpr int16_t kTrailer = -1;
constexpr base::SqlState kProgramLimitExceeded{"54000"};

base::Error Malformed(std::string message) {
  return base::Error(base::kProtocolViolation, std::move(message));
}

}  // namespace

void CopyBinaryReader::Feed(std::string_view chunk) {
  if (!starved_) {
    throw base::Error(base::kNotInPrerequisiteState, "the last chunk of the copy is not yet read");
  }
  starved_ = false;
  if (pending_.empty()) {
    window_ = chunk;
    window_is_pending_ = false;
  } else {
    pending_.append(chunk);
    window_ = pending_;
    window_is_pending_ = true;
  }
}

CopyBinaryReader::Step CopyBinaryReader::Next() {
  if (place_ != Place::kAfterTrailer && (starved_ || window_.size() < needed_)) return KeepRest();
  if (place_ == Place::kHeader && !TryHeader()) return KeepRest();
  if (place_ == Place::kRows) {
    const std::optional<Step> step = TryRow();
    if (!step.has_value()) return KeepRest();
    if (*step == Step::kRow) return Step::kRow;
  }
  if (!window_.empty()) {
    throw Malformed(fmt::format("{} bytes after the end of the copy", window_.size()));
  }
  window_ = {};
  pending_.clear();
  fields_.clear();
  row_ = {};
  starved_ = true;
  return Step::kEnd;
}

void CopyBinaryReader::ExpectEnd() const {
  if (place_ != Place::kAfterTrailer) {
    throw Malformed(fmt::format("the copy ended within its data, after {} rows", rows_));
  }
}

bool CopyBinaryReader::TryHeader() {
  const size_t known = std::min(window_.size(), kSignature.size());
  if (window_.substr(0, known) != kSignature.substr(0, known)) {
    throw Malformed("the stream is no binary copy: its signature differs");
  }
  needed_ = kFixedHeaderSize;
  if (window_.size() < needed_) return false;
  ByteReader in(window_.substr(kSignature.size()));
  const uint32_t flags = in.ReadU32();
  if ((flags & kCriticalFlags) != 0) {
    throw Malformed(fmt::format("the binary copy has unknown critical flags 0x{:08x}", flags));
  }
  const int32_t extension_size = in.ReadI32();
  if (extension_size < 0) {
    throw Malformed(
        fmt::format("the binary copy has a header extension of {} bytes", extension_size));
  }
  needed_ = kFixedHeaderSize + static_cast<size_t>(extension_size);
  if (window_.size() < needed_) return false;
  window_.remove_prefix(needed_);
  needed_ = 0;
  place_ = Place::kRows;
  return true;
}

// nullopt: the row is not yet complete, and needed_ says how much is missing at least.
std::optional<CopyBinaryReader::Step> CopyBinaryReader::TryRow() {
  const char* const begin = window_.data();
  needed_ = sizeof(int16_t);
  if (window_.size() < needed_) return std::nullopt;
  const auto count = LoadBigEndian<int16_t>(begin);
  if (count == kTrailer) {
    place_ = Place::kAfterTrailer;
    window_.remove_prefix(needed_);
    needed_ = 0;
    return Step::kEnd;
  }
  if (count < 0) throw Malformed(fmt::format("row {} claims {} fields", rows_ + 1, count));
  const auto field_count = static_cast<size_t>(count);
  if (rows_ > 0 && field_count != field_count_) {
    throw Malformed(
        fmt::format("row {} has {} fields instead of {}", rows_ + 1, field_count, field_count_));
  }

  fields_.clear();
  for (size_t i = 0; i < field_count; ++i) {
    const size_t at = needed_;
    needed_ += sizeof(int32_t);
    if (window_.size() < needed_) return std::nullopt;
    const auto length = LoadBigEndian<int32_t>(begin + at);
    if (length < -1) {
      throw Malformed(fmt::format("field {} of row {} has length {}", i + 1, rows_ + 1, length));
    }
    if (length == -1) {
      fields_.push_back(std::nullopt);
      continue;
    }
    needed_ += static_cast<size_t>(length);
    if (window_.size() < needed_) return std::nullopt;
    fields_.emplace_back(
        std::string_view(begin + at + sizeof(int32_t), static_cast<size_t>(length)));
  }

  row_ = window_.substr(0, needed_);
  window_.remove_prefix(needed_);
  needed_ = 0;
  field_count_ = field_count;
  ++rows_;
  return Step::kRow;
}

// Takes over what is left of the chunk, since the caller may now free it.
CopyBinaryReader::Step CopyBinaryReader::KeepRest() {
  if (window_is_pending_) {
    pending_.erase(0, pending_.size() - window_.size());
  } else if (!starved_) {
    pending_.assign(window_);
  }
  window_ = pending_;
  window_is_pending_ = true;
  starved_ = true;
  fields_.clear();
  row_ = {};
  return Step::kNeedMore;
}

void CopyBinaryWriter::WriteHeader() {
  out_.WriteBytes(kSignature);
  out_.WriteU32(0);  // flags
  out_.WriteI32(0);  // no extension
}

void CopyBinaryWriter::WriteField(const CopyField& field) {
  if (!field.has_value()) return WriteNull();
  const std::string_view value = *field;
  if (value.size() > std::numeric_limits<int32_t>::max()) {
    throw base::Error(kProgramLimitExceeded,
                      fmt::format("cannot copy a value of {} bytes", value.size()));
  }
  out_.WriteI32(static_cast<int32_t>(value.size()));
  out_.WriteBytes(value);
}

void CopyBinaryWriter::EndField(size_t begun) {
  const size_t size = out_.size() - begun;
  if (size > std::numeric_limits<int32_t>::max()) {
    throw base::Error(kProgramLimitExceeded, fmt::format("cannot copy a value of {} bytes", size));
  }
  out_.PatchI32(begun - sizeof(int32_t), static_cast<int32_t>(size));
}

}  // namespace tidemark::wire
