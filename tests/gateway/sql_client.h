// A client as applications are: libpq in the simple, the extended and the pipelined protocol. Tells
// everything of an answer that a test may compare. One thread.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::tests {

/// What one statement answered; an error leaves `state` and what follows it.
struct Answer {
  std::string rows;  // fields joined by |, NULL for null, one line each; binary ones in hex
  std::string columns;
  std::string tag;
  std::string state, message, detail, hint;
  int position = 0;
  char transaction = '?';  // I, T or E after it

  /// `state position message`, or "ok".
  std::string Outcome() const;
};

class SqlClient {
 public:
  using Parameters = std::vector<std::optional<std::string>>;

  explicit SqlClient(const std::string& dsn);

  /// The last result of a text in the simple protocol; COPY … TO gives its bytes as `rows`.
  Answer Simple(const std::string& sql);
  /// One statement without a name, in the extended protocol.
  Answer Extended(const std::string& sql, const Parameters& parameters = {}, bool binary = false);
  Answer Prepare(const std::string& name, const std::string& sql);
  Answer Run(const std::string& name, const Parameters& parameters = {}, bool binary = false);
  /// Types of the parameters of a prepared statement, by number.
  std::vector<Oid> ParametersOf(const std::string& name);
  /// Several statements in one pipeline with one Sync; one answer each, the last is the Sync's.
  std::vector<Answer> Pipeline(const std::vector<std::pair<std::string, Parameters>>& statements);
  /// A parameter in binary, of the given type.
  Answer ExtendedBinary(const std::string& sql, Oid type, const std::string& bytes);

  PGconn* get() const { return connection_.get(); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  Answer Take(PGresult* result);
  std::unique_ptr<PGconn, Finish> connection_;
};

}  // namespace tidemark::tests
