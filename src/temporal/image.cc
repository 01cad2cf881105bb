#include "temporal/image.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace tidemark::temporal {

char* Arena::Allocate(size_t size) {
  if (blocks_.empty() || at_ + size > blocks_.back().size) {
    if (!blocks_.empty()) bytes_before_ += at_;
    const size_t usual = blocks_.empty() ? kFirstBlockBytes
                                         : std::min(kBlockBytesMax, 2 * blocks_.back().size);
    const size_t block = std::max(size, usual);
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(block), block});
    at_ = 0;
  }
  char* piece = blocks_.back().memory.get() + at_;
  at_ += size;
  return piece;
}

void Arena::Clear() {
  if (!blocks_.empty()) {
    const bool keep = blocks_.front().size == kFirstBlockBytes;
    blocks_.resize(keep ? 1 : 0);
  }
  at_ = 0;
  bytes_before_ = 0;
}

ImageField ImageReader::Next() {
  const int32_t length = wire::LoadBigEndian<int32_t>(at_);
  at_ += sizeof length;
  const std::string_view value(at_, length > 0 ? static_cast<size_t>(length) : 0);
  at_ += value.size();
  return {length, value};
}

Image FillKept(const Image& image, const Image& source, size_t columns, Arena& arena) {
  char* const begin = arena.Allocate(image.size + source.size);
  char* at = begin;
  Image filled{begin, 0, false};
  ImageReader own(image), other(source);
  for (size_t i = 0; i < columns; ++i) {
    const ImageField mine = own.Next();
    const ImageField theirs = other.Next();
    const ImageField& field = mine.length == kKeptLength ? theirs : mine;
    filled.has_kept = filled.has_kept || field.length == kKeptLength;
    wire::StoreBigEndian(at, field.length);
    at += sizeof field.length;
    if (!field.value.empty()) std::memcpy(at, field.value.data(), field.value.size());
    at += field.value.size();
  }
  filled.size = static_cast<uint32_t>(at - begin);
  arena.Shrink(image.size + source.size - filled.size);
  return filled;
}

}  // namespace tidemark::temporal
