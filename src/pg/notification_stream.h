// What other sessions NOTIFY on one channel. A connection of its own, which does nothing else. Only
// a wake-up: what was notified before, or while the line was lost, is not heard of. One thread.
// Manual: "LISTEN", "Asynchronous Notification" of libpq.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"

struct pg_conn;

namespace tidemark::pg {

class Bell;

class NotificationStream {
 public:
  /// Connects and listens: what is committed after this is heard of. Throws 08001 when the server
  /// cannot be reached, its own refusals, and 0A000 from a hot standby, on which nobody can listen.
  NotificationStream(const std::string& dsn, const std::string& channel, base::Deadline deadline,
                     const std::stop_token& stop);
  ~NotificationStream();
  NotificationStream(const NotificationStream&) = delete;
  NotificationStream& operator=(const NotificationStream&) = delete;

  /// The next one's payload, in the order of the commits; nullopt at the deadline. One that has
  /// passed takes what is here without waiting. Throws 08006 when the line is lost, 57014 on stop.
  std::optional<std::string> Next(base::Deadline deadline, const std::stop_token& stop);

 private:
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };
  void Listen(const std::string& channel, base::Deadline deadline, const std::stop_token& stop);
  /// False at the deadline.
  bool AwaitInput(base::Deadline deadline, const std::stop_token& stop);

  std::unique_ptr<Bell> bell_;
  std::unique_ptr<pg_conn, Finish> connection_;
};

}  // namespace tidemark::pg
