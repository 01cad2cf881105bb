// Waiting for a socket with a deadline and a stop token, without polling in slices: a stop request
// writes to an eventfd that the wait also watches. Any thread; one Wait call at a time per object.
#pragma once

#include <stop_token>

#include "base/clock.h"

namespace tidemark::pg {

enum class Ready { kSocket, kWoken, kDeadline };

/// An eventfd that one thread may sleep on and any thread may ring.
class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  /// Wakes the sleeping thread, or the next one that goes to sleep. Any thread, async-signal-safe.
  void Ring() noexcept;
  /// Waits until `socket` is readable (or writable, if asked), somebody rang, `stop` was requested
  /// or the deadline passed. A ring is consumed. `socket` may be -1. Throws 57014 on stop.
  Ready Wait(int socket, bool also_writable, base::Deadline deadline, const std::stop_token& stop);

 private:
  int fd_;
};

}  // namespace tidemark::pg
