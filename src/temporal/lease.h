// Who captures. One process at a time holds a lease: a session advisory lock in the store, and a
// fence that grows with every take-over and is checked by every publish, so that a holder that
// was frozen and replaced cannot publish any more.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "pg/connection.h"

namespace tidemark::temporal {

class Lease {
 public:
  /// Takes the lease on this connection, which must stay open as long as it is held. Waits for the
  /// holder; logs whom it waits for. Throws 57014 on stop.
  static Lease Take(pg::Connection& store, const std::string& name, std::stop_token stop);
  /// The same, but throws 55006 when the holder has not let go by the deadline.
  static Lease TakeBefore(pg::Connection& store, const std::string& name, base::Deadline deadline,
                          std::stop_token stop);

  const std::string& name() const { return name_; }
  int64_t fence() const { return fence_; }

 private:
  Lease(std::string name, int64_t fence) : name_(std::move(name)), fence_(fence) {}
  std::string name_;
  int64_t fence_;
};

}  // namespace tidemark::temporal
