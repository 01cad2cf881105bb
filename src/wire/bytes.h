// Bytes in network order: a reader over a borrowed span and a writer that appends to a string.
// Every format of this room is built from these two; they know no message, no type, no socket.
// Inline, because they run once per field of every row. Manual: "Message Data Types".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tidemark::wire {

/// Integer at `from`, which need not be aligned.
template <typename Int>
Int LoadBigEndian(const char* from) {
  std::make_unsigned_t<Int> value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) {
    if constexpr (sizeof value == 2) value = __builtin_bswap16(value);
    if constexpr (sizeof value == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof value == 8) value = __builtin_bswap64(value);
  }
  return static_cast<Int>(value);
}

/// Stores `value` at `to`, which need not be aligned.
template <typename Int>
void StoreBigEndian(char* to, Int value) {
  auto bits = static_cast<std::make_unsigned_t<Int>>(value);
  if constexpr (std::endian::native == std::endian::little) {
    if constexpr (sizeof bits == 2) bits = __builtin_bswap16(bits);
    if constexpr (sizeof bits == 4) bits = __builtin_bswap32(bits);
    if constexpr (sizeof bits == 8) bits = __builtin_bswap64(bits);
  }
  std::memcpy(to, &bits, sizeof bits);
}

/// Reads forward over bytes that it borrows. Every Read throws `on_short` with the offset when
/// fewer bytes are left than it needs, and then has read nothing.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, base::SqlState on_short = base::kProtocolViolation)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()), on_short_(on_short) {}

  uint8_t ReadU8() { return Read<uint8_t>(); }
  uint16_t ReadU16() { return Read<uint16_t>(); }
  int16_t ReadI16() { return Read<int16_t>(); }
  uint32_t ReadU32() { return Read<uint32_t>(); }
  int32_t ReadI32() { return Read<int32_t>(); }
  uint64_t ReadU64() { return Read<uint64_t>(); }
  int64_t ReadI64() { return Read<int64_t>(); }
  /// One byte as a protocol letter.
  char ReadChar() { return static_cast<char>(Read<uint8_t>()); }

  /// The next `count` bytes, borrowed.
  std::string_view ReadBytes(size_t count) {
    Need(count);
    const std::string_view bytes(at_, count);
    at_ += count;
    return bytes;
  }
  /// The bytes up to a NUL, borrowed and without it; the NUL is read too.
  std::string_view ReadString() {
    const void* nul = at_ == end_ ? nullptr : std::memchr(at_, 0, remaining());
    if (nul == nullptr) ThrowUnterminated();
    const std::string_view text(at_, static_cast<size_t>(static_cast<const char*>(nul) - at_));
    at_ += text.size() + 1;
    return text;
  }
  /// Everything that is left, borrowed.
  std::string_view ReadRest() { return ReadBytes(remaining()); }
  /// Throws `on_short` unless every byte has been read.
  void ExpectEnd() const {
    if (at_ != end_) ThrowTrailing();
  }

  size_t remaining() const { return static_cast<size_t>(end_ - at_); }
  /// Bytes read so far.
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }

 private:
  template <typename Int>
  Int Read() {
    Need(sizeof(Int));
    const Int value = LoadBigEndian<Int>(at_);
    at_ += sizeof(Int);
    return value;
  }
  void Need(size_t count) const {
    if (remaining() < count) [[unlikely]] {
      ThrowShort(count);
    }
  }
  [[noreturn]] void ThrowShort(size_t count) const;
  [[noreturn]] void ThrowUnterminated() const;
  [[noreturn]] void ThrowTrailing() const;

  const char* begin_;
  const char* at_;
  const char* end_;
  base::SqlState on_short_;
};

/// Appends to a string that it borrows and never clears.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(&out) {}

  void WriteU8(uint8_t value) { out_->push_back(static_cast<char>(value)); }
  void WriteChar(char letter) { out_->push_back(letter); }
  void WriteU16(uint16_t value) { Write(value); }
  void WriteI16(int16_t value) { Write(value); }
  void WriteU32(uint32_t value) { Write(value); }
  void WriteI32(int32_t value) { Write(value); }
  void WriteU64(uint64_t value) { Write(value); }
  void WriteI64(int64_t value) { Write(value); }
  void WriteBytes(std::string_view bytes) { out_->append(bytes); }
  /// `text` and a NUL. Throws 22023 when `text` itself holds a NUL.
  void WriteString(std::string_view text);

  /// Bytes in the string so far, those from before this writer included: an offset for Patch.
  size_t size() const { return out_->size(); }
  /// Overwrites the integer at offset `at`, which must have been written.
  void PatchI16(size_t at, int16_t value) { StoreBigEndian(out_->data() + at, value); }
  void PatchI32(size_t at, int32_t value) { StoreBigEndian(out_->data() + at, value); }

 private:
  template <typename Int>
  void Write(Int value) {
    char bytes[sizeof value];
    StoreBigEndian(bytes, value);
    out_->append(bytes, sizeof bytes);
  }

  std::string* out_;
};

}  // namespace tidemark::wire
