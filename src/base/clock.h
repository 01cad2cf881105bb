// Time as the rest of the code sees it: deadlines on the monotonic clock for every wait, and
// PostgreSQL's timestamptz (microseconds since 2000-01-01 UTC) for instants that are stored.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace tidemark::base {

/// The instant by which a wait must have ended.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline After(std::chrono::milliseconds span) { return Deadline(Clock::now() + span); }
  static Deadline Never() { return Deadline(Clock::time_point::max()); }

  bool passed() const { return Clock::now() >= at_; }
  /// Milliseconds left, rounded up, at least 0, at most `most`.
  std::chrono::milliseconds left(std::chrono::milliseconds most = std::chrono::hours(1)) const;
  /// The earlier of the two.
  Deadline Min(Deadline other) const { return at_ < other.at_ ? *this : other; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

/// timestamptz as PostgreSQL keeps it: microseconds since 2000-01-01 00:00 UTC.
class Timestamp {
 public:
  constexpr Timestamp() = default;
  constexpr explicit Timestamp(int64_t postgres_us) : us_(postgres_us) {}
  static Timestamp FromSystem(std::chrono::system_clock::time_point at);
  constexpr int64_t postgres_us() const { return us_; }
  /// ISO 8601 in UTC with six decimals, as timestamptz input reads it back exactly.
  std::string ToString() const;
  constexpr auto operator<=>(const Timestamp&) const = default;

 private:
  int64_t us_ = 0;
};

}  // namespace tidemark::base
