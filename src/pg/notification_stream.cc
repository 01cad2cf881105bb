#include "pg/notification_stream.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include "base/error.h"
#include "base/identifier.h"
#include "pg/connecting.h"
#include "pg/connection.h"

namespace tidemark::pg {

using base::Deadline;
using base::Error;

void NotificationStream::Finish::operator()(pg_conn* connection) const noexcept {
  PQfinish(connection);
}

NotificationStream::NotificationStream(const std::string& dsn, const std::string& channel,
                                       Deadline deadline, const std::stop_token& stop)
    : bell_(std::make_unique<Bell>()) {
  const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", nullptr};
  const char* values[] = {dsn.c_str(), "tidemark", "UTF8", nullptr};
  connection_.reset(Connect(keys, values, *bell_, deadline, stop));
  Listen(channel, deadline, stop);
}

NotificationStream::~NotificationStream() = default;

void NotificationStream::Listen(const std::string& channel, Deadline deadline,
                                const std::stop_token& stop) {
  PGconn* raw = connection_.get();
  const auto sql = fmt::format("LISTEN {}", base::QuoteIdentifier(channel));
  if (PQsendQuery(raw, sql.c_str()) == 0) {
    throw Error(base::kConnectionFailure,
                fmt::format("could not listen: {}", OneLine(PQerrorMessage(raw))));
  }
  for (;;) {
    while (PQflush(raw) != 0 || PQisBusy(raw) != 0) {
      if (!AwaitInput(deadline, stop)) {
        throw Error(base::kQueryCanceled, "the server did not answer in time");
      }
    }
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(raw), PQclear);
    if (!result) return;
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR) throw ErrorOf(result.get());
  }
}

bool NotificationStream::AwaitInput(Deadline deadline, const std::stop_token& stop) {
  PGconn* raw = connection_.get();
  if (bell_->Wait(PQsocket(raw), PQflush(raw) == 1, deadline, stop) == Ready::kDeadline) {
    return false;
  }
  if (PQconsumeInput(raw) == 0) {
    throw Error(base::kConnectionFailure,
                fmt::format("could not read from the server: {}", OneLine(PQerrorMessage(raw))));
  }
  return true;
}

std::optional<std::string> NotificationStream::Next(Deadline deadline,
                                                    const std::stop_token& stop) {
  for (;;) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> heard(PQnotifies(connection_.get()),
                                                                PQfreemem);
    if (heard) return heard->extra;
    if (!AwaitInput(deadline, stop)) return std::nullopt;
  }
}

}  // namespace tidemark::pg
