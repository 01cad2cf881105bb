#include "pg/replication_stream.h"

#include <libpq-fe.h>

#include "pg/wait.h"

namespace tidemark::pg {

ReplicationStream::ReplicationStream(Connection& connection, std::string_view start)
    : connection_(&connection) {
  connection_->Execute(start);
}

ReplicationStream::~ReplicationStream() { PQfreemem(buffer_); }

ReplicationStream::Event ReplicationStream::TryNext() {
  PGconn* raw = connection_->connection_.get();
  PQfreemem(buffer_);
  buffer_ = nullptr;
  for (bool consumed = false;; consumed = true) {
    const int size = PQgetCopyData(raw, &buffer_, 1);
    if (size > 0) {
      message_ = {buffer_, static_cast<size_t>(size)};
      return Event::kMessage;
    }
    if (size == -2) connection_->ThrowLost("receive the replication stream");
    if (size == -1) {
      connection_->deadline_ = base::Deadline::After(std::chrono::seconds(10));
      connection_->Drain("START_REPLICATION");  // throws the server's error, if it sent one
      return Event::kEnd;
    }
    if (consumed) return Event::kNothing;
    if (PQconsumeInput(raw) == 0) connection_->ThrowLost("receive the replication stream");
  }
}

void ReplicationStream::Wait(base::Deadline deadline, const std::stop_token& stop) {
  connection_->bell_->Wait(PQsocket(connection_->connection_.get()), false, deadline, stop);
}

void ReplicationStream::WaitForBell(base::Deadline deadline, const std::stop_token& stop) {
  connection_->bell_->Wait(-1, false, deadline, stop);
}

void ReplicationStream::Send(std::string_view bytes, base::Deadline deadline) {
  connection_->deadline_ = deadline;
  PGconn* raw = connection_->connection_.get();
  for (;;) {
    const int sent = PQputCopyData(raw, bytes.data(), static_cast<int>(bytes.size()));
    if (sent < 0) connection_->ThrowLost("send a status update");
    connection_->Flush();
    if (sent == 1) return;
  }
}

void ReplicationStream::Ring() noexcept { connection_->bell_->Ring(); }

}  // namespace tidemark::pg
