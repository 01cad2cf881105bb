#include "temporal/hash_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "wire/bytes.h"

namespace tidemark::temporal {

using base::Hash;

namespace {

constexpr size_t kRunBufferHashes = 64 * 1024 / sizeof(Hash);

[[noreturn]] void ThrowFileError(const char* doing) {
  throw base::Error(base::kIoError,
                    fmt::format("could not {} a temporary file: {}", doing, std::strerror(errno)));
}

// As unsigned bytes, which Hash's own operator would not do. Two hashes hardly ever agree in their
// first eight.
bool Less(const Hash& a, const Hash& b) {
  const auto x = wire::LoadBigEndian<uint64_t>(a.data()),
             y = wire::LoadBigEndian<uint64_t>(b.data());
  return x != y ? x < y : std::memcmp(a.data(), b.data(), a.size()) < 0;
}

}  // namespace

void HashOrder::Add(const Hash& hash) {
  if (kept_ == kept_max_) Spill();
  buckets_[static_cast<unsigned char>(hash[0])].push_back(hash);
  ++kept_;
}

void HashOrder::Sort() {
  for (auto& bucket : buckets_) {
    std::ranges::sort(bucket, [](const Hash& a, const Hash& b) { return Less(a, b); });
  }
}

void HashOrder::Spill() {
  Sort();
  if (!file_) file_.reset(std::tmpfile());
  if (!file_) ThrowFileError("open");
  for (auto& bucket : buckets_) {
    if (std::fwrite(bucket.data(), sizeof(Hash), bucket.size(), file_.get()) != bucket.size()) {
      ThrowFileError("write");
    }
    bucket.clear();
  }
  const uint64_t begin = runs_.empty() ? 0 : runs_.back().end;
  runs_.push_back({.next = begin, .end = begin + kept_, .buffer = {}});
  kept_ = 0;
}

// The next hashes of the run; false at its end.
bool HashOrder::Fill(Run& run) {
  run.at = 0;
  run.buffer.resize(std::min<size_t>(kRunBufferHashes, run.end - run.next));
  if (run.buffer.empty()) return false;
  if (::fseeko(file_.get(), static_cast<off_t>(run.next * sizeof(Hash)), SEEK_SET) != 0 ||
      std::fread(run.buffer.data(), sizeof(Hash), run.buffer.size(), file_.get()) !=
          run.buffer.size()) {
    ThrowFileError("read");
  }
  run.next += run.buffer.size();
  return true;
}

void HashOrder::Read(const std::function<void(const Hash&)>& take) {
  if (runs_.empty()) {
    Sort();
    for (const auto& bucket : buckets_) {
      for (const Hash& hash : bucket) take(hash);
    }
    return;
  }
  if (kept_ > 0) Spill();
  buckets_.clear();
  // The run with the least next hash first.
  const auto later = [](const Run* a, const Run* b) {
    return Less(b->buffer[b->at], a->buffer[a->at]);
  };
  std::vector<Run*> heap;
  for (Run& run : runs_) {
    if (Fill(run)) heap.push_back(&run);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Run& run = *heap.back();
    take(run.buffer[run.at++]);
    if (run.at < run.buffer.size() || Fill(run)) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      heap.pop_back();
    }
  }
}

}  // namespace tidemark::temporal
