#include "temporal/sieve.h"

#include <algorithm>

namespace tidemark::temporal {

namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr int kRowBits = 32;  // of a number that names a waiting incoming row

}  // namespace

Sieve::Sieve(size_t current_rows_max) : current_rows_max_(std::max<size_t>(current_rows_max, 2)) {}

void Sieve::GiveCurrent(const RowDigest& digest, RowPlace place) {
  const uint64_t waiting = incoming_.Take(digest);
  if (waiting != DigestTable::kNone) {
    --chunks_[static_cast<size_t>((waiting >> kRowBits) - first_chunk_)].waiting;
    ++met_;
    DropMet();
    return;
  }
  if (current_.size() == current_rows_max_) LeaveHalf();
  current_.Put(digest, place);
}

void Sieve::GiveIncoming(const RowDigest& digest, std::string_view row, std::string& released) {
  if (current_.Take(digest) != DigestTable::kNone) {
    ++met_;
    return;
  }
  if (chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes) chunks_.emplace_back();
  Chunk& chunk = chunks_.back();
  const uint64_t number = first_chunk_ + chunks_.size() - 1;
  if (!incoming_.Put(digest, (number << kRowBits) | chunk.rows.size())) {
    released += row;
    return;
  }
  chunk.rows.emplace_back(digest, static_cast<uint32_t>(chunk.bytes.size()));
  chunk.bytes += row;
  ++chunk.waiting;
  bytes_ += row.size();
}

void Sieve::Release(std::string& released) {
  if (chunks_.empty()) return;
  const Chunk& chunk = chunks_.front();
  for (size_t i = 0; i < chunk.rows.size(); ++i) {
    const auto& [digest, begin] = chunk.rows[i];
    if (incoming_.Find(digest) != ((first_chunk_ << kRowBits) | i)) continue;
    incoming_.Take(digest);
    const size_t end = i + 1 < chunk.rows.size() ? chunk.rows[i + 1].second : chunk.bytes.size();
    released.append(chunk.bytes, begin, end - begin);
  }
  bytes_ -= chunk.bytes.size();
  chunks_.pop_front();
  ++first_chunk_;
}

// Chunks of which no row waits any more.
void Sieve::DropMet() {
  while (!chunks_.empty() && chunks_.front().waiting == 0) {
    bytes_ -= chunks_.front().bytes.size();
    chunks_.pop_front();
    ++first_chunk_;
  }
}

// The older half; places grow.
void Sieve::LeaveHalf() {
  std::vector<RowPlace> places;
  places.reserve(current_.size());
  current_.ForEach([&](RowPlace place) { places.push_back(place); });
  const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
  std::nth_element(places.begin(), middle, places.end());
  unmet_.insert(unmet_.end(), places.begin(), middle);
  current_.RemoveIf([&](RowPlace place) { return place < *middle; });
}

std::vector<RowPlace> Sieve::TakeUnmet() {
  current_.ForEach([&](RowPlace place) { unmet_.push_back(place); });
  current_ = {};
  return std::move(unmet_);
}

}  // namespace tidemark::temporal
