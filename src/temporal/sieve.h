// Two streams of rows, those of a source and the current ones of the store, of which equal rows
// cancel each other out. Rows wait here for their equals as long as there is room: few, while both
// come in about the same order. What had to leave, or is left, is to be compared by key; so an odd
// order costs time and nothing else. Pure; one thread.
//
//   incoming ──► waiting, with bytes ──room is short──► Release      is staged
//                     ⇅ equal: met
//   current ───► waiting, with place ──room is short──► unmet        stays to be compared
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "temporal/digest_table.h"
#include "temporal/row_digest.h"

namespace tidemark::temporal {

/// Where a row lies in its table: block and line of its ctid, in the order of scans. Never 0.
using RowPlace = uint64_t;

constexpr RowPlace PlaceOf(uint32_t block, uint16_t line) { return (uint64_t{block} << 16) | line; }
constexpr uint32_t BlockOf(RowPlace place) { return static_cast<uint32_t>(place >> 16); }
constexpr uint16_t LineOf(RowPlace place) { return static_cast<uint16_t>(place); }

class Sieve {
 public:
  /// So many current rows may wait, of 32 bytes each; the older half of them must leave then.
  explicit Sieve(size_t current_rows_max);

  /// Takes in a current row; no two are equal.
  void GiveCurrent(const RowDigest& digest, RowPlace place);
  /// Takes in a row of the source; `row` is copied if it has to wait. True if it waits. Appends it
  /// to `released` if it is equal to one that waits: one of them at most can be met.
  bool GiveIncoming(const RowDigest& digest, std::string_view row, std::string& released);
  /// Appends the longest waiting incoming rows, a few hundred kilobytes, to `released`; they wait
  /// no more.
  void Release(std::string& released);

  int64_t met() const { return met_; }
  size_t current_waiting() const { return current_.size(); }
  size_t incoming_waiting() const { return incoming_.size(); }
  /// Memory that waiting incoming rows take, and at most as much again of those that were met.
  size_t incoming_bytes() const { return bytes_; }
  /// Current rows that had to leave, in no order.
  const std::vector<RowPlace>& unmet() const { return unmet_; }
  /// Makes all current rows leave, and gives them. Call once, at the end.
  std::vector<RowPlace> TakeUnmet();

 private:
  // Rows that came one after the other.
  struct Chunk {
    std::string bytes;
    std::vector<std::pair<RowDigest, uint32_t>> rows;  // and where each begins
    size_t waiting = 0;
  };
  Chunk& At(uint64_t number) { return chunks_[static_cast<size_t>(number - first_chunk_)]; }
  void ShrinkIfHalfMet(uint64_t number);
  void LeaveHalf();

  size_t current_rows_max_;
  DigestTable current_, incoming_;  // place; number of chunk and of row in it
  std::deque<Chunk> chunks_;
  uint64_t first_chunk_ = 0;  // number of chunks_.front()
  size_t bytes_ = 0;
  int64_t met_ = 0;
  std::vector<RowPlace> unmet_;
};

}  // namespace tidemark::temporal
