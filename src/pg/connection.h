// One connection to a PostgreSQL server, its statements and their results. Born connected, closed
// by the destructor. One thread. Every round trip is bounded by a deadline and a stop token.
// Errors of the server keep their SQLSTATE; 08006 means that the connection is gone, 57014 that
// the deadline passed or a stop was requested (the statement is then cancelled at the server).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

struct pg_conn;
struct pg_result;

namespace tidemark::pg {

class Bell;

/// What a statement answered: rows of text fields, and the command's count.
class Result {
 public:
  int rows() const;
  int columns() const;
  bool is_null(int row, int column) const;
  /// The field as text; empty when NULL. Valid while the Result lives.
  std::string_view text(int row, int column) const;
  std::string str(int row, int column) const { return std::string(text(row, column)); }
  std::optional<std::string> optional(int row, int column) const;
  int64_t int64(int row, int column) const;
  bool boolean(int row, int column) const { return text(row, column) == "t"; }
  /// Rows touched by INSERT/UPDATE/DELETE/COPY/SELECT INTO; 0 for others.
  int64_t affected() const;

 private:
  friend class Connection;
  struct Clear {
    void operator()(pg_result* result) const noexcept;
  };
  explicit Result(pg_result* result) : result_(result) {}
  std::unique_ptr<pg_result, Clear> result_;
};

/// A statement's parameters as text; nullopt is NULL.
using Parameter = std::optional<std::string>;

class Connection {
 public:
  struct Options {
    std::string dsn;               // libpq keyword/value string or URI
    std::string application_name = "tidemark";
    bool replication = false;      // replication=database
    bool timeouts = true;          // false: switches off what ends statements and sessions there
    std::vector<std::pair<std::string, std::string>> settings;  // SET at once, in order
  };
  /// Connects. With `timeouts` off the server ends nothing that takes long or is idle, whatever
  /// database and role begin with: whoever opens it has limits of its own. Throws 08001 when the server cannot be reached, or the server's own refusal
  /// (28P01, 3D000, 53300, …); never shows the password.
  static Connection Open(const Options& options, base::Deadline deadline,
                         std::stop_token stop = {});
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  /// How long each following statement may take, and what may interrupt it.
  void SetLimits(std::chrono::milliseconds statement_limit, std::stop_token stop);

  /// Runs one or several statements without parameters (simple protocol); the last one's result.
  Result Execute(std::string_view sql);
  /// Runs one statement with text parameters; the server infers their types.
  Result Execute(std::string_view sql, std::span<const Parameter> parameters);
  Result Execute(std::string_view sql, std::initializer_list<Parameter> parameters) {
    return Execute(sql, std::span<const Parameter>(parameters.begin(), parameters.size()));
  }
  /// The one field of the one row. Throws XX000 when the shape differs.
  std::string Value(std::string_view sql, std::initializer_list<Parameter> parameters = {});
  /// Like Execute with parameters, but the plan is kept on the server under the text's own name.
  Result ExecutePrepared(const std::string& sql, std::initializer_list<Parameter> parameters);

  /// 150018 for 15.18.
  int server_version() const;
  int server_pid() const;
  /// A parameter the server reports (server_encoding, TimeZone, …), empty if it does not.
  std::string parameter(const std::string& name) const;
  /// Where it is connected, without secrets: host, port, database, user.
  std::string Describe() const;
  bool InTransaction() const;
  /// True while the server has not closed the line, as far as is known without asking.
  bool IsOpen() const;
  /// What to do with NOTICEs; default: log at debug level.
  void OnNotice(std::function<void(std::string_view)> receiver);

 private:
  friend class CopyIn;
  friend class CopyOut;
  friend class ReplicationStream;
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };
  Connection();
  void Set(const std::string& name, const std::string& value, base::Deadline deadline);
  void Flush();
  pg_result* NextResult();  // waits; nullptr at the end of the statement
  Result Drain(std::string_view sql);
  [[noreturn]] void ThrowLost(std::string_view doing);
  void Cancel() noexcept;

  std::unique_ptr<pg_conn, Finish> connection_;
  std::unique_ptr<Bell> bell_;
  std::unique_ptr<std::function<void(std::string_view)>> notice_;
  std::chrono::milliseconds statement_limit_{std::chrono::minutes(5)};
  std::stop_token stop_;
  base::Deadline deadline_ = base::Deadline::Never();
  std::vector<std::string> prepared_;
};

/// The error of a failed result, with the server's fields.
base::Error ErrorOf(const pg_result* result);

/// BEGIN … COMMIT around what its owner does; the destructor rolls back. Borrows the connection.
class Transaction {
 public:
  explicit Transaction(Connection& connection, std::string_view begin = "BEGIN");
  Transaction(Transaction&& other) noexcept : connection_(other.connection_) {
    other.connection_ = nullptr;
  }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Connection& connection() { return *connection_; }
  /// Throws 08007 when the line broke so that the outcome is unknown.
  void Commit() &&;

 private:
  Connection* connection_;
};

}  // namespace tidemark::pg
