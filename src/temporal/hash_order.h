// Any number of hashes, given in any order and read back in theirs: in memory while they are few,
// beyond that as sorted runs in an unnamed temporary file. Bounded memory: 32 MB, and 64 kB a run.
// One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "base/sha256.h"

namespace tidemark::temporal {

class HashOrder {
 public:
  /// Keeps so many in memory.
  explicit HashOrder(size_t kept_max = size_t{1} << 20) : kept_max_(kept_max), buckets_(256) {}

  /// Throws 58030 when the temporary file cannot be written.
  void Add(const base::Hash& hash);
  /// Calls `take` for each hash in ascending order of its bytes, equal ones as often as they were
  /// added. Call once, at the end. Throws 58030.
  void Read(const std::function<void(const base::Hash&)>& take);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  struct Run {
    uint64_t next, end;  // hashes of the file
    std::vector<base::Hash> buffer;
    size_t at = 0;
  };
  void Sort();
  void Spill();
  bool Fill(Run& run);

  size_t kept_max_, kept_ = 0;
  // By their first byte: each is sorted within the processor's caches.
  std::vector<std::vector<base::Hash>> buckets_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<Run> runs_;
};

}  // namespace tidemark::temporal
