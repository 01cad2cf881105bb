#include "pg/connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/identifier.h"
#include "base/log.h"
#include "pg/connecting.h"
#include "pg/wait.h"

namespace tidemark::pg {

using base::Deadline;
using base::Error;
using base::SqlState;

// ---- Result

void Result::Clear::operator()(pg_result* result) const noexcept { PQclear(result); }
int Result::rows() const { return PQntuples(result_.get()); }
int Result::columns() const { return PQnfields(result_.get()); }
bool Result::is_null(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}
std::string_view Result::text(int row, int column) const {
  if (row >= rows() || column >= columns()) {
    throw Error(base::kInternalError, fmt::format("no field {} in row {}", column, row));
  }
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}
std::optional<std::string> Result::optional(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return str(row, column);
}
int64_t Result::int64(int row, int column) const {
  const auto field = text(row, column);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (code != std::errc() || end != field.data() + field.size()) {
    throw Error(base::kInternalError, fmt::format("\"{}\" is not an integer", field));
  }
  return value;
}
int64_t Result::affected() const {
  const std::string_view count = PQcmdTuples(result_.get());
  int64_t value = 0;
  std::from_chars(count.data(), count.data() + count.size(), value);
  return value;
}

Error ErrorOf(const pg_result* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  Error error(state == nullptr ? base::kConnectionFailure : SqlState(state),
              OneLine(message != nullptr ? message : PQresultErrorMessage(result)));
  if (const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL)) {
    std::move(error).Detail(detail);
  }
  if (const char* hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT)) {
    std::move(error).Hint(hint);
  }
  if (const char* context = PQresultErrorField(result, PG_DIAG_CONTEXT)) {
    error.AddContext(OneLine(context));
  }
  return error;
}

// ---- Connection

namespace {

// What a server ends by itself, and the first version that does. The first is the one under which
// the others are set.
constexpr std::pair<const char*, int> kTimeouts[] = {{"statement_timeout", 0},
                                                     {"lock_timeout", 0},
                                                     {"idle_in_transaction_session_timeout", 0},
                                                     {"idle_session_timeout", 140000},
                                                     {"transaction_timeout", 170000}};

}  // namespace

void Connection::Finish::operator()(pg_conn* connection) const noexcept { PQfinish(connection); }
Connection::Connection() : bell_(std::make_unique<Bell>()) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Connection Connection::Open(const Options& options, Deadline deadline, std::stop_token stop) {
  const char* keys[] = {"dbname", "fallback_application_name", "client_encoding", "replication",
                        nullptr};
  const char* values[] = {options.dsn.c_str(), options.application_name.c_str(), "UTF8",
                          options.replication ? "database" : nullptr, nullptr};
  if (!options.replication) keys[3] = nullptr;
  Connection self;
  self.stop_ = stop;
  self.connection_.reset(Connect(keys, values, *self.bell_, deadline, stop));
  self.OnNotice([](std::string_view text) { spdlog::debug("server notice: {}", text); });
  if (!options.timeouts) {
    for (const auto& [name, since] : kTimeouts) {
      if (self.server_version() >= since) self.Set(name, "0", deadline);
    }
  }
  for (const auto& [name, value] : options.settings) self.Set(name, value, deadline);
  return self;
}

// Until statement_timeout is set the one that the role begins with holds, and a server may need
// longer than that for a session's first statements.
void Connection::Set(const std::string& name, const std::string& value, Deadline deadline) {
  for (;;) {
    try {
      Execute(fmt::format("SET {} = {}", base::QuoteIdentifier(name), base::QuoteLiteral(value)));
      return;
    } catch (const Error& error) {
      if (error.state() != base::kQueryCanceled) throw;
      if (deadline.passed() || stop_.stop_requested()) throw;
    }
  }
}

void Connection::SetLimits(std::chrono::milliseconds statement_limit, std::stop_token stop) {
  statement_limit_ = statement_limit;
  stop_ = std::move(stop);
}

void Connection::ThrowLost(std::string_view doing) {
  throw Error(base::kConnectionFailure,
              fmt::format("could not {}: {}", doing, OneLine(PQerrorMessage(connection_.get()))));
}

void Connection::Flush() {
  for (;;) {
    const int left = PQflush(connection_.get());
    if (left == 0) return;
    if (left < 0) ThrowLost("send to the server");
    if (bell_->Wait(PQsocket(connection_.get()), true, deadline_, stop_) == Ready::kDeadline) {
      throw Error(base::kQueryCanceled, "the server did not take what was sent in time");
    }
    if (PQconsumeInput(connection_.get()) == 0) ThrowLost("read from the server");
  }
}

void Connection::Cancel() noexcept {
  if (PGcancel* cancel = PQgetCancel(connection_.get())) {
    char message[256];
    PQcancel(cancel, message, sizeof message);
    PQfreeCancel(cancel);
  }
}

pg_result* Connection::NextResult() {
  PGconn* raw = connection_.get();
  while (PQisBusy(raw) != 0) {
    Ready ready;
    try {
      ready = bell_->Wait(PQsocket(raw), false, deadline_, stop_);
    } catch (const Error&) {
      Cancel();
      throw;
    }
    if (ready == Ready::kDeadline) {
      Cancel();
      throw Error(base::kQueryCanceled, "the server did not answer in time");
    }
    if (ready == Ready::kSocket && PQconsumeInput(raw) == 0) ThrowLost("read from the server");
  }
  return PQgetResult(raw);
}

Result Connection::Drain(std::string_view sql) {
  Flush();
  Result last(nullptr);
  std::optional<Error> error;
  for (;;) {
    Result result(NextResult());
    if (!result.result_) break;
    const auto status = PQresultStatus(result.result_.get());
    if (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE) {
      if (!error) error = ErrorOf(result.result_.get());
      if (PQstatus(connection_.get()) == CONNECTION_BAD) break;
    } else {
      const bool copying = status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
                           status == PGRES_COPY_BOTH;
      last = std::move(result);
      if (copying) break;
    }
  }
  if (error) {
    if (PQstatus(connection_.get()) == CONNECTION_BAD && !error->IsConnectionLoss()) {
      error = Error(base::kConnectionFailure, error->message());
    }
    error->AddContext(
        fmt::format("statement: {}", sql.size() > 600 ? sql.substr(0, 600) : sql));
    throw *error;
  }
  if (!last.result_) ThrowLost("run a statement");
  return last;
}

Result Connection::Execute(std::string_view sql) {
  deadline_ = Deadline::After(statement_limit_);
  if (PQsendQuery(connection_.get(), std::string(sql).c_str()) == 0) ThrowLost("run a statement");
  return Drain(sql);
}

namespace {

std::vector<const char*> Pointers(std::span<const Parameter> parameters) {
  std::vector<const char*> values;
  for (const auto& parameter : parameters) {
    values.push_back(parameter ? parameter->c_str() : nullptr);
  }
  return values;
}

}  // namespace

Result Connection::Execute(std::string_view sql, std::span<const Parameter> parameters) {
  deadline_ = Deadline::After(statement_limit_);
  const auto values = Pointers(parameters);
  if (PQsendQueryParams(connection_.get(), std::string(sql).c_str(),
                        static_cast<int>(values.size()), nullptr, values.data(), nullptr, nullptr,
                        0) == 0) {
    ThrowLost("run a statement");
  }
  return Drain(sql);
}

Result Connection::ExecutePrepared(const std::string& sql,
                                   std::initializer_list<Parameter> parameters) {
  deadline_ = Deadline::After(statement_limit_);
  auto found = std::find(prepared_.begin(), prepared_.end(), sql);
  const std::string name = fmt::format("tidemark_{}", found - prepared_.begin());
  if (found == prepared_.end()) {
    if (PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr) == 0) {
      ThrowLost("prepare a statement");
    }
    Drain(sql);
    prepared_.push_back(sql);
  }
  const auto values =
      Pointers(std::span<const Parameter>(parameters.begin(), parameters.size()));
  if (PQsendQueryPrepared(connection_.get(), name.c_str(), static_cast<int>(values.size()),
                          values.data(), nullptr, nullptr, 0) == 0) {
    ThrowLost("run a statement");
  }
  return Drain(sql);
}

std::string Connection::Value(std::string_view sql, std::initializer_list<Parameter> parameters) {
  const auto result = Execute(sql, parameters);
  if (result.rows() != 1 || result.columns() != 1) {
    throw Error(base::kInternalError,
                fmt::format("expected one value, got {} rows of {}", result.rows(),
                            result.columns()))
        .AddContext(fmt::format("statement: {}", sql));
  }
  return result.str(0, 0);
}

int Connection::server_version() const { return PQserverVersion(connection_.get()); }
int Connection::server_pid() const { return PQbackendPID(connection_.get()); }

std::string Connection::parameter(const std::string& name) const {
  const char* value = PQparameterStatus(connection_.get(), name.c_str());
  return value == nullptr ? "" : value;
}

std::string Connection::Describe() const {
  const PGconn* raw = connection_.get();
  return fmt::format("host={} port={} dbname={} user={}", PQhost(raw), PQport(raw), PQdb(raw),
                     PQuser(raw));
}

bool Connection::InTransaction() const {
  return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE;
}

bool Connection::IsOpen() const { return PQstatus(connection_.get()) == CONNECTION_OK; }

void Connection::OnNotice(std::function<void(std::string_view)> receiver) {
  notice_ = std::make_unique<std::function<void(std::string_view)>>(std::move(receiver));
  PQsetNoticeReceiver(
      connection_.get(),
      [](void* self, const PGresult* result) {
        (*static_cast<std::function<void(std::string_view)>*>(self))(
            OneLine(PQresultErrorMessage(result)));
      },
      notice_.get());
}

// ---- Transaction

Transaction::Transaction(Connection& connection, std::string_view begin)
    : connection_(&connection) {
  connection_->Execute(begin);
}

Transaction::~Transaction() {
  if (connection_ == nullptr || !connection_->IsOpen()) return;
  try {
    connection_->Execute("ROLLBACK");
  } catch (const Error& error) {
    spdlog::debug("rollback: {}", error.what());
  }
}

void Transaction::Commit() && {
  Connection* connection = std::exchange(connection_, nullptr);
  try {
    connection->Execute("COMMIT");
  } catch (const Error& error) {
    if (error.IsConnectionLoss() || error.state() == base::kQueryCanceled) {
      throw Error(base::kCommitOutcomeUnknown,
                  fmt::format("the outcome of a commit is unknown: {}", error.message()));
    }
    throw;
  }
}

}  // namespace tidemark::pg
