#include "temporal/digest_table.h"

namespace tidemark::temporal {

// The digest's slot, or the empty one where it would be put.
size_t DigestTable::At(const RowDigest& digest) const {
  const size_t mask = slots_.size() - 1;
  size_t at = digest.low & mask;
  while (slots_[at].value != kNone && slots_[at].digest != digest) at = (at + 1) & mask;
  return at;
}

bool DigestTable::Put(const RowDigest& digest, uint64_t value) {
  if (4 * (size_ + 1) > 3 * slots_.size()) Grow();
  Slot& slot = slots_[At(digest)];
  if (slot.value != kNone) return false;
  slot = {digest, value};
  ++size_;
  return true;
}

uint64_t DigestTable::Find(const RowDigest& digest) const { return slots_[At(digest)].value; }

uint64_t DigestTable::Take(const RowDigest& digest) {
  const size_t mask = slots_.size() - 1;
  size_t gap = At(digest);
  const uint64_t value = slots_[gap].value;
  if (value == kNone) return kNone;
  // Closes the gap: nothing that is behind it may have to be looked for across an empty slot.
  for (size_t at = (gap + 1) & mask; slots_[at].value != kNone; at = (at + 1) & mask) {
    const size_t home = slots_[at].digest.low & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap].value = kNone;
  --size_;
  return value;
}

void DigestTable::Grow() {
  std::vector<Slot> slots(2 * slots_.size());
  slots.swap(slots_);
  for (const Slot& slot : slots) {
    if (slot.value != kNone) slots_[At(slot.digest)] = slot;
  }
}

}  // namespace tidemark::temporal
