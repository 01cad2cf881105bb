// Which partitions of one dataset's history become one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidemark::temporal {

struct MeasuredPartition {
  int number = 0;
  int64_t bytes = 0;  // indexes apart
  /// When its first transaction and the first one after it were published, in microseconds; none
  /// where that is not known (yet).
  std::optional<int64_t> from_us, to_us;
};

struct MergeBounds {
  int64_t bytes_max = 0;
  std::optional<int64_t> span_us_max;  // none: any
};

struct Neighbours {
  int first = 0, last = 0;  // numbers of partitions
  bool operator==(const Neighbours&) const = default;
};

/// Of closed partitions, oldest first: the first one, with up to three others. None while there are
/// fewer than four and none has `waited` long enough for others.
std::optional<Neighbours> ToSealTogether(const std::vector<MeasuredPartition>& closed, bool waited,
                                         const MergeBounds& bounds);

/// Of sealed partitions, oldest first: four to seven of which none has more than a third of all, or
/// eight of which none has more than half; as few as can be, the newest such. Without bounds, the
/// number of partitions then grows with the logarithm of the history, whatever the sizes in which
/// they come.
std::optional<Neighbours> ToMerge(const std::vector<MeasuredPartition>& sealed,
                                  const MergeBounds& bounds);

}  // namespace tidemark::temporal
