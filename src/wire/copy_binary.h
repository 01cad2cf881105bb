// COPY … (FORMAT binary): a reader that takes the stream in any chunks, a writer, and the first
// copy's short cut that widens a row without looking at its values. Values stay bytes; their
// formats belong to columnar/. Manual: COPY, "Binary Format"; our page:
// docs/formats/copy-binary.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/bytes.h"

namespace tidemark::wire {

/// One value of a row; nullopt is NULL.
using CopyField = std::optional<std::string_view>;

/// Reads header, rows and trailer.
///
///     Feed(chunk)  ──► Next() ──kRow──► fields(), row_bytes() ──► Next() …
///          ▲             ├──kNeedMore─┐
///          └─────────────┼────────────┘
///                        └──kEnd: the trailer was read
///
/// A chunk is borrowed until Next has returned kNeedMore or kEnd; a row that lies whole in one
/// chunk is never copied.
class CopyBinaryReader {
 public:
  enum class Step { kRow, kNeedMore, kEnd };

  CopyBinaryReader() = default;
  CopyBinaryReader(const CopyBinaryReader&) = delete;  // it points into itself
  CopyBinaryReader& operator=(const CopyBinaryReader&) = delete;

  /// Give the next chunk. Throws 55000 while Next has not yet asked for it. An empty chunk is
  /// allowed.
  void Feed(std::string_view chunk);
  template <std::same_as<std::string> Temporary>
  void Feed(Temporary&& chunk) = delete;  // it would die before it is read

  /// Move to the next row. Throws 08P01 for bytes that are no COPY BINARY stream, for a row
  /// with another number of fields than the first, and for bytes after the trailer.
  Step Next();

  /// The row's values, in column order; valid until the next call of Next.
  std::span<const CopyField> fields() const { return fields_; }
  /// The row as it stands in the stream, field count included; valid until the next call of Next.
  std::string_view row_bytes() const { return row_; }

  /// To be called when the server has ended the copy. Throws 08P01 unless the trailer was read.
  void ExpectEnd() const;

 private:
  enum class Place { kHeader, kRows, kAfterTrailer };

  bool TryHeader();
  std::optional<Step> TryRow();
  Step KeepRest();

  Place place_ = Place::kHeader;
  bool starved_ = true;      // Next has asked for a chunk
  std::string_view window_;  // not yet read: in the caller's chunk, or in pending_
  std::string pending_;      // the beginning of a row, kept across chunks
  bool window_is_pending_ = false;
  size_t needed_ = 0;  // bytes of window_ without which the next attempt must fail
  uint64_t rows_ = 0;
  size_t field_count_ = 0;
  std::vector<CopyField> fields_;
  std::string_view row_;
};

/// Writes a COPY BINARY stream to a string that it borrows: WriteHeader, then for each row
/// WriteRow and exactly its number of fields, then WriteTrailer.
class CopyBinaryWriter {
 public:
  explicit CopyBinaryWriter(std::string& out) : out_(out) {}

  void WriteHeader();
  void WriteRow(int16_t field_count) { out_.WriteI16(field_count); }
  void WriteNull() { out_.WriteI32(-1); }
  /// Throws 54000 for a value of 2 GiB or more.
  void WriteField(const CopyField& field);
  /// An int8 value, such as a row version's _from.
  void WriteI64(int64_t value) {
    out_.WriteI32(sizeof value);
    out_.WriteI64(value);
  }
  /// A value of a length not yet known: the caller appends it to the string between the two
  /// calls and hands back what BeginField returned.
  size_t BeginField() {
    out_.WriteI32(0);
    return out_.size();
  }
  void EndField(size_t begun);
  void WriteTrailer() { out_.WriteI16(-1); }

 private:
  ByteWriter out_;
};

}  // namespace tidemark::wire
