#include "pg/copy.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <utility>

#include "pg/wait.h"

namespace tidemark::pg {

using base::Error;

namespace {
// libpq grows its buffer without bound when not flushed; this much is pushed at a time.
constexpr size_t kFlushBytes = 256 * 1024;
}  // namespace

CopyIn::CopyIn(Connection& connection, std::string_view sql) : connection_(&connection), sql_(sql) {
  connection_->Execute(sql);
}

CopyIn::~CopyIn() {
  if (connection_ != nullptr) Abort();
}

void CopyIn::Abort() noexcept {
  try {
    connection_->deadline_ = base::Deadline::After(std::chrono::seconds(10));
    if (PQputCopyEnd(connection_->connection_.get(), "abandoned") == 1) connection_->Drain(sql_);
  } catch (const Error&) {
    // The server answers an abandoned copy with an error: that is the expected end here.
  }
  connection_ = nullptr;
}

void CopyIn::Write(std::string_view bytes) {
  connection_->deadline_ = base::Deadline::After(connection_->statement_limit_);
  PGconn* raw = connection_->connection_.get();
  while (!bytes.empty()) {
    const auto part = bytes.substr(0, kFlushBytes);
    const int sent = PQputCopyData(raw, part.data(), static_cast<int>(part.size()));
    if (sent < 0) connection_->ThrowLost("send rows to the server");
    if (sent == 1) {
      bytes.remove_prefix(part.size());
      unflushed_ += part.size();
    }
    if (sent == 0 || unflushed_ >= kFlushBytes) {
      connection_->Flush();
      unflushed_ = 0;
    }
  }
}

int64_t CopyIn::Finish() {
  Connection& connection = *std::exchange(connection_, nullptr);
  connection.deadline_ = base::Deadline::After(connection.statement_limit_);
  PGconn* raw = connection.connection_.get();
  int ended;
  while ((ended = PQputCopyEnd(raw, nullptr)) == 0) connection.Flush();
  if (ended < 0) connection.ThrowLost("end a copy");
  return connection.Drain(sql_).affected();
}

CopyOut::CopyOut(Connection& connection, std::string_view sql)
    : connection_(&connection), sql_(sql) {
  connection_->Execute(sql);
}

CopyOut::~CopyOut() {
  PQfreemem(std::exchange(buffer_, nullptr));
  if (done_ || !connection_->IsOpen()) return;
  connection_->Cancel();
  try {
    while (Next()) {
    }
  } catch (const Error&) {
    // The cancelled copy's own error.
  }
}

std::optional<std::string_view> CopyOut::Next() {
  PQfreemem(buffer_);
  buffer_ = nullptr;
  if (done_) return std::nullopt;
  PGconn* raw = connection_->connection_.get();
  for (bool waits = false;; waits = true) {
    const int size = PQgetCopyData(raw, &buffer_, 1);
    if (size > 0) return std::string_view(buffer_, static_cast<size_t>(size));
    // The clock is not read for each of the rows that are here already.
    if (!waits) connection_->deadline_ = base::Deadline::After(connection_->statement_limit_);
    if (size == -1) {
      done_ = true;
      rows_ = connection_->Drain(sql_).affected();
      return std::nullopt;
    }
    if (size == -2) {
      done_ = true;
      connection_->ThrowLost("receive rows");
    }
    if (connection_->bell_->Wait(PQsocket(raw), false, connection_->deadline_,
                                 connection_->stop_) == Ready::kDeadline) {
      throw Error(base::kQueryCanceled, "the server did not send rows in time");
    }
    if (PQconsumeInput(raw) == 0) connection_->ThrowLost("receive rows");
  }
}

}  // namespace tidemark::pg
