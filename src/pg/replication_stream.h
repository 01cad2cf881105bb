// The transport of logical replication: START_REPLICATION's copy-both stream, bytes only (wire/
// decodes them). Borrows a replication connection. One thread reads and writes; any thread may
// ring the bell to wake it. Manual: "Streaming Replication Protocol".
#pragma once

#include <optional>
#include <string_view>

#include "pg/connection.h"

namespace tidemark::pg {

class ReplicationStream {
 public:
  /// `start` is the START_REPLICATION command. Throws 55006 when the slot is active elsewhere,
  /// 42704 when it does not exist, 55000 when it was invalidated.
  ReplicationStream(Connection& connection, std::string_view start);
  ~ReplicationStream();
  ReplicationStream(const ReplicationStream&) = delete;
  ReplicationStream& operator=(const ReplicationStream&) = delete;

  enum class Event { kMessage, kNothing, kEnd };
  /// Takes the next CopyData message if one is here; does not wait. After kMessage, `message()` is
  /// valid until the next call. kEnd: the server ended the stream. Throws its error.
  Event TryNext();
  std::string_view message() const { return message_; }
  /// Waits until something may be readable, somebody rang, or the deadline passed.
  void Wait(base::Deadline deadline, const std::stop_token& stop);
  /// Waits until somebody rang or the deadline passed, whatever the socket holds.
  void WaitForBell(base::Deadline deadline, const std::stop_token& stop);
  /// Sends one CopyData message (a status update), waiting at most `deadline` for room.
  void Send(std::string_view bytes, base::Deadline deadline);
  /// Wakes Wait(). Any thread.
  void Ring() noexcept;

 private:
  Connection* connection_;
  char* buffer_ = nullptr;
  std::string_view message_;
};

}  // namespace tidemark::pg
