#include "temporal/neighbours.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace tidemark::temporal {

namespace {

constexpr size_t kSealedTogether = 4, kMergedLeast = 4, kMergedMost = 8;

using Run = std::span<const MeasuredPartition>;

int64_t BytesOf(Run run) {
  return std::accumulate(run.begin(), run.end(), int64_t{0},
                         [](int64_t sum, const auto& one) { return sum + one.bytes; });
}

bool MayBeOne(Run run, const MergeBounds& bounds) {
  if (BytesOf(run) > bounds.bytes_max) return false;
  if (!bounds.span_us_max) return true;
  const auto& from = run.front().from_us;
  const auto& to = run.back().to_us;
  return from && to && *to - *from <= *bounds.span_us_max;
}

// Else a large partition would be rewritten for every few small ones. Eight are too many to wait.
bool IsBalanced(Run run) {
  const auto largest = std::ranges::max(run, {}, &MeasuredPartition::bytes).bytes;
  return largest <= BytesOf(run) / (run.size() < kMergedMost ? 3 : 2);
}

Neighbours Named(Run run) { return {run.front().number, run.back().number}; }

}  // namespace

std::optional<Neighbours> ToSealTogether(const std::vector<MeasuredPartition>& closed, bool waited,
                                         const MergeBounds& bounds) {
  if (closed.empty() || (closed.size() < kSealedTogether && !waited)) return std::nullopt;
  size_t count = std::min(closed.size(), kSealedTogether);
  while (count > 1 && !MayBeOne(Run(closed).first(count), bounds)) --count;
  return Named(Run(closed).first(count));
}

std::optional<Neighbours> ToMerge(const std::vector<MeasuredPartition>& sealed,
                                  const MergeBounds& bounds) {
  for (size_t count = kMergedLeast; count <= std::min(kMergedMost, sealed.size()); ++count) {
    for (size_t end = sealed.size(); end >= count; --end) {
      const auto run = Run(sealed).subspan(end - count, count);
      if (IsBalanced(run) && MayBeOne(run, bounds)) return Named(run);
    }
  }
  return std::nullopt;
}

}  // namespace tidemark::temporal
