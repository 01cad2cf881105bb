// Row images in memory: the fields of one row as COPY BINARY writes them (int32 length, bytes), in
// the dataset's column order, with one more length for a value that the source did not send
// because it is unchanged. Held by an arena that a batch empties as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tidemark::temporal {

inline constexpr int32_t kNullLength = -1;
inline constexpr int32_t kKeptLength = -2;  // unchanged large value, not sent

/// Memory for many small pieces that are freed together.
class Arena {
 public:
  char* Allocate(size_t size);
  /// Gives back the newest `size` bytes of the newest Allocate.
  void Shrink(size_t size) { at_ -= size; }
  size_t bytes() const { return bytes_before_ + at_; }
  /// Forgets everything; keeps one block.
  void Clear();

 private:
  static constexpr size_t kFirstBlockBytes = 4 << 10;
  static constexpr size_t kBlockBytesMax = 1 << 20;
  struct Block {
    std::unique_ptr<char[]> memory;
    size_t size;
  };
  std::vector<Block> blocks_;
  size_t at_ = 0;  // in the last block
  size_t bytes_before_ = 0;
};

struct Image {
  const char* bytes = nullptr;
  uint32_t size = 0;
  bool has_kept = false;
  std::string_view view() const { return {bytes, size}; }
};

/// One field of an image.
struct ImageField {
  int32_t length;  // kNullLength, kKeptLength or the number of bytes
  std::string_view value;
};

/// Walks the fields of an image in order.
class ImageReader {
 public:
  explicit ImageReader(const Image& image) : at_(image.bytes) {}
  ImageField Next();

 private:
  const char* at_;
};

/// `image` with every kept field taken from `source` (whose own kept fields stay kept).
Image FillKept(const Image& image, const Image& source, size_t columns, Arena& arena);

}  // namespace tidemark::temporal
