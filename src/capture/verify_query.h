// The SQL by which verify reads one table on one server: totals, checksums of parts of it, single
// rows. The same text on both sides but for the FROM clause. Pure: builds statements, runs none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "temporal/dataset.h"

namespace tidemark::capture {

/// How text becomes 64 bits: by the server's own hash where both sides agree on it, else by
/// SHA-256 of its UTF-8 form (another encoding, another byte order).
enum class TextHash { kNative, kPortable };

/// Parts of a table: the rows whose key hash ends in one of these bit patterns.
struct Buckets {
  static constexpr int kBitsPerLevel = 10;
  static constexpr int kLevelMax = 5;
  int level = 0;  // 0: the whole table
  std::vector<int64_t> patterns = {0};
  static int64_t Mask(int level) { return (int64_t{1} << (kBitsPerLevel * level)) - 1; }
};

class VerifyQuery {
 public:
  /// `from` is what follows FROM, its row filter included.
  VerifyQuery(const temporal::Dataset& dataset, TextHash hash, std::string from);

  /// One row: count, checksum; the latter on top of another one.
  std::string Totals(const std::string& checksum = "0") const;
  /// By pattern of the next level, ascending: pattern, count, checksum.
  std::string Split(const Buckets& buckets) const;
  /// By key hash, ascending: key hash, key, count, checksum. At most `rows_max` rows.
  std::string Rows(const Buckets& buckets, size_t rows_max) const;
  /// One row per key hash: key hash, then a hash for each column of the dataset.
  std::string ColumnHashes(std::span<const int64_t> key_hashes) const;

 private:
  std::string HashOf(const std::string& row) const;
  std::vector<std::string> columns_;  // quoted
  TextHash hash_;
  std::string from_, key_, key_hash_, row_hash_;
};

}  // namespace tidemark::capture
