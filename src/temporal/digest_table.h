// Row digests and a number for each, in one piece of memory that grows and never shrinks: small
// while few are in it, whatever number came and went. Open addressing with linear probing; digests
// are random bits already. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "temporal/row_digest.h"

namespace tidemark::temporal {

class DigestTable {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  /// False if the digest is there already; `value` is anything but kNone.
  bool Put(const RowDigest& digest, uint64_t value);
  /// Gives another value to a digest that is there.
  void Set(const RowDigest& digest, uint64_t value) { slots_[At(digest)].value = value; }
  /// The digest's value, or kNone.
  uint64_t Find(const RowDigest& digest) const;
  /// Find, and removes it.
  uint64_t Take(const RowDigest& digest);
  size_t size() const { return size_; }

  /// Removes every entry whose value `which` is true for.
  template <typename Which>
  void RemoveIf(Which which) {
    std::vector<Slot> slots(slots_.size());
    slots.swap(slots_);
    size_ = 0;
    for (const Slot& slot : slots) {
      if (slot.value != kNone && !which(slot.value)) Put(slot.digest, slot.value);
    }
  }
  /// Calls `visit` with each value, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.value != kNone) visit(slot.value);
    }
  }

 private:
  struct Slot {
    RowDigest digest;
    uint64_t value = kNone;
  };
  size_t At(const RowDigest& digest) const;
  void Grow();

  // A power of two; at most three quarters are in use.
  std::vector<Slot> slots_ = std::vector<Slot>(64);
  size_t size_ = 0;
};

}  // namespace tidemark::temporal
