#include "wire/oid_translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "wire/bytes.h"
#include "wire/utf8.h"

namespace tidemark::wire {

namespace {

using Kind = TypeNode::Kind;

constexpr int32_t kDimensionsMax = 6;

// Flags of a range; the other bits never leave the server's memory.
constexpr uint8_t kEmpty = 0x01;
constexpr uint8_t kLowerInfinite = 0x08;
constexpr uint8_t kUpperInfinite = 0x10;
constexpr uint8_t kKnownFlags = 0x1f;

template <typename... Args>
[[noreturn]] void ThrowMalformed(fmt::format_string<Args...> format, Args&&... args) {
  throw base::Error(base::kInvalidBinary, fmt::format(format, std::forward<Args>(args)...));
}

const TypeNode& OnlyChild(const TypeNode& type) {
  if (type.children.size() != 1) {
    throw base::Error(base::kInternalError,
                      fmt::format("type {} has {} parts in its plan instead of one",
                                  type.source_oid, type.children.size()));
  }
  return type.children.front();
}

void TranslateValue(const TypeNode& type, std::span<char> value);

// Walks the parts of one value, which it reads and patches.
class Parts {
 public:
  explicit Parts(std::span<char> value)
      : value_(value), in_(std::string_view(value.data(), value.size()), base::kInvalidBinary) {}

  ByteReader& in() { return in_; }

  void TranslateOid(const TypeNode& part) {
    const size_t at = in_.offset();
    const uint32_t oid = in_.ReadU32();
    if (oid != part.source_oid) {
      ThrowMalformed("binary value has type {} at offset {} instead of {}", oid, at,
                     part.source_oid);
    }
    StoreBigEndian(value_.data() + at, part.store_oid);
  }

  // A length and that many bytes; -1 is NULL where `null_allowed`.
  void TranslatePart(const TypeNode& part, bool null_allowed) {
    const int32_t length = in_.ReadI32();
    if (length == -1 && null_allowed) return;
    if (length < 0) {
      ThrowMalformed("binary value has a part of length {} at offset {}", length,
                     in_.offset() - sizeof length);
    }
    const size_t at = in_.offset();
    in_.ReadBytes(static_cast<size_t>(length));
    TranslateValue(part, value_.subspan(at, static_cast<size_t>(length)));
  }

 private:
  std::span<char> value_;
  ByteReader in_;
};

// The number of elements. Bounded by the bytes that follow, since each takes at least four.
size_t ReadElementCount(int32_t dimensions, ByteReader& in) {
  if (dimensions == 0) return 0;
  uint64_t count = 1;
  for (int32_t i = 0; i < dimensions; ++i) {
    const int32_t length = in.ReadI32();
    in.ReadI32();  // lower bound
    if (length < 0) ThrowMalformed("binary array has a dimension of {} elements", length);
    count = std::min<uint64_t>(count * static_cast<uint64_t>(length), UINT32_MAX);
  }
  if (count * sizeof(int32_t) > in.remaining()) {
    ThrowMalformed("binary array of {} elements has {} bytes for them", count, in.remaining());
  }
  return count;
}

void TranslateArray(const TypeNode& type, Parts& parts) {
  const TypeNode& element = OnlyChild(type);
  ByteReader& in = parts.in();
  const int32_t dimensions = in.ReadI32();
  if (dimensions < 0 || dimensions > kDimensionsMax) {
    ThrowMalformed("binary array has {} dimensions", dimensions);
  }
  const int32_t has_nulls = in.ReadI32();
  if (has_nulls != 0 && has_nulls != 1) ThrowMalformed("binary array has flags {}", has_nulls);
  parts.TranslateOid(element);
  const size_t count = ReadElementCount(dimensions, in);
  for (size_t i = 0; i < count; ++i) parts.TranslatePart(element, true);
}

void TranslateComposite(const TypeNode& type, Parts& parts) {
  const int32_t count = parts.in().ReadI32();
  if (count < 0 || static_cast<size_t>(count) != type.children.size()) {
    ThrowMalformed("binary composite has {} columns instead of {}", count, type.children.size());
  }
  for (const TypeNode& column : type.children) {
    parts.TranslateOid(column);
    parts.TranslatePart(column, true);
  }
}

void TranslateRange(const TypeNode& type, Parts& parts) {
  const TypeNode& subtype = OnlyChild(type);
  const uint8_t flags = parts.in().ReadU8();
  if ((flags & ~kKnownFlags) != 0) ThrowMalformed("binary range has flags 0x{:02x}", flags);
  if ((flags & kEmpty) != 0) return;
  if ((flags & kLowerInfinite) == 0) parts.TranslatePart(subtype, false);
  if ((flags & kUpperInfinite) == 0) parts.TranslatePart(subtype, false);
}

void TranslateMultirange(const TypeNode& type, Parts& parts) {
  const TypeNode& range = OnlyChild(type);
  const int32_t count = parts.in().ReadI32();
  if (count < 0) ThrowMalformed("binary multirange has {} ranges", count);
  for (int32_t i = 0; i < count; ++i) parts.TranslatePart(range, false);
}

void CheckText(const TypeNode& type, std::span<char> text) {
  if (type.replace) {
    ReplaceInvalidUtf8(text);
    return;
  }
  const size_t at = FindInvalidUtf8({text.data(), text.size()});
  if (at == std::string_view::npos) return;
  throw base::Error(base::kCharacterNotInRepertoire,
                    fmt::format("byte 0x{:02x} at offset {} is not UTF-8",
                                static_cast<uint8_t>(text[at]), at));
}

// PostgreSQL 17 and newer: all parts at their least or at their greatest.
void CheckInterval(ByteReader& in) {
  const int64_t time = in.ReadI64();
  const int32_t days = in.ReadI32();
  const int32_t months = in.ReadI32();
  const bool least = time == INT64_MIN && days == INT32_MIN && months == INT32_MIN;
  const bool greatest = time == INT64_MAX && days == INT32_MAX && months == INT32_MAX;
  if (least || greatest) throw base::Error(base::kDatetimeOverflow, "the interval is infinite");
}

bool IsLookedAt(const TypeNode& type) {
  return type.kind == Kind::kText || type.kind == Kind::kVersionedText ||
         type.kind == Kind::kFiniteInterval;
}

void TranslateValue(const TypeNode& type, std::span<char> value) {
  if (type.kind == Kind::kScalar) return;
  if (type.kind == Kind::kText) return CheckText(type, value);
  Parts parts(value);
  switch (type.kind) {
    case Kind::kScalar:
    case Kind::kText:
      return;
    case Kind::kVersionedText:
      parts.in().ReadU8();
      return CheckText(type, value.subspan(1));
    case Kind::kFiniteInterval:
      CheckInterval(parts.in());
      break;
    case Kind::kArray:
      TranslateArray(type, parts);
      break;
    case Kind::kComposite:
      TranslateComposite(type, parts);
      break;
    case Kind::kRange:
      TranslateRange(type, parts);
      break;
    case Kind::kMultirange:
      TranslateMultirange(type, parts);
      break;
  }
  parts.in().ExpectEnd();
}

}  // namespace

bool NeedsTranslation(const TypeNode& type) {
  if (IsLookedAt(type)) return true;
  const bool embeds_oids = type.kind == Kind::kArray || type.kind == Kind::kComposite;
  return std::any_of(type.children.begin(), type.children.end(), [&](const TypeNode& part) {
    return (embeds_oids && part.source_oid != part.store_oid) || NeedsTranslation(part);
  });
}

void Translate(const TypeNode& type, std::span<char> value) { TranslateValue(type, value); }

}  // namespace tidemark::wire
