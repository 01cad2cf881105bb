#include "temporal/sieve.h"

#include <algorithm>
#include <utility>

namespace tidemark::temporal {

namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr int kRowBits = 32;  // of a number that names a waiting incoming row

}  // namespace

Sieve::Sieve(size_t current_rows_max) : current_rows_max_(std::max<size_t>(current_rows_max, 2)) {}

void Sieve::GiveCurrent(const RowDigest& digest, RowPlace place) {
  const uint64_t waiting = incoming_.Take(digest);
  if (waiting != DigestTable::kNone) {
    ++met_;
    const uint64_t number = waiting >> kRowBits;
    --At(number).waiting;
    // The last one is still being filled.
    if (number + 1 < first_chunk_ + chunks_.size()) ShrinkIfHalfMet(number);
    return;
  }
  if (current_.size() == current_rows_max_) LeaveHalf();
  current_.Put(digest, place);
}

bool Sieve::GiveIncoming(const RowDigest& digest, std::string_view row, std::string& released) {
  if (current_.Take(digest) != DigestTable::kNone) {
    ++met_;
    return false;
  }
  if (chunks_.empty() || chunks_.back().bytes.size() >= kChunkBytes) {
    if (!chunks_.empty()) ShrinkIfHalfMet(first_chunk_ + chunks_.size() - 1);
    chunks_.emplace_back();
  }
  Chunk& chunk = chunks_.back();
  const uint64_t number = first_chunk_ + chunks_.size() - 1;
  if (!incoming_.Put(digest, (number << kRowBits) | chunk.rows.size())) {
    released += row;
    return false;
  }
  chunk.rows.emplace_back(digest, static_cast<uint32_t>(chunk.bytes.size()));
  chunk.bytes += row;
  ++chunk.waiting;
  bytes_ += row.size();
  return true;
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

// Rows that were met give their memory back; never more often than they become half as many.
void Sieve::ShrinkIfHalfMet(uint64_t number) {
  Chunk& chunk = At(number);
  if (2 * chunk.waiting > chunk.rows.size()) return;
  Chunk kept;
  for (size_t i = 0; i < chunk.rows.size() && kept.rows.size() < chunk.waiting; ++i) {
    const auto& [digest, begin] = chunk.rows[i];
    if (incoming_.Find(digest) != ((number << kRowBits) | i)) continue;
    incoming_.Set(digest, (number << kRowBits) | kept.rows.size());
    kept.rows.emplace_back(digest, static_cast<uint32_t>(kept.bytes.size()));
    const size_t end = i + 1 < chunk.rows.size() ? chunk.rows[i + 1].second : chunk.bytes.size();
    kept.bytes.append(chunk.bytes, begin, end - begin);
  }
  kept.waiting = chunk.waiting;
  bytes_ -= chunk.bytes.size() - kept.bytes.size();
  chunk = std::move(kept);
  while (!chunks_.empty() && chunks_.front().rows.empty()) {
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
