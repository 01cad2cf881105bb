// The one type that Tidemark throws. It is an error as PostgreSQL reports one: SQLSTATE, message,
// detail, hint, context lines and, for statements, a position. Policy (retry, reconnect, refuse)
// is decided from the SQLSTATE, never from the text. Text follows PostgreSQL's style guide:
// message in lower case without a full stop; detail and hint are sentences; secrets never.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/sqlstate.h"

namespace tidemark::base {

class Error : public std::exception {
 public:
  Error(SqlState state, std::string message);

  Error&& Detail(std::string text) &&;
  Error&& Hint(std::string text) &&;
  /// `characters` counts characters from 1, as the protocol's 'P' field does.
  Error&& Position(int characters) &&;
  /// Adds one line that says what was being done; the innermost comes first.
  Error& AddContext(std::string line);

  SqlState state() const { return state_; }
  const std::string& message() const { return message_; }
  const std::string& detail() const { return detail_; }
  const std::string& hint() const { return hint_; }
  std::optional<int> position() const { return position_; }
  const std::vector<std::string>& context() const { return context_; }

  /// True when the same call may succeed later without anybody changing anything: lost
  /// connections (08), resources (53), operator intervention (57), serialization (40).
  bool IsTransient() const;
  /// True when the connection that threw it is of no further use.
  bool IsConnectionLoss() const;

  /// One line: `message (SQLSTATE)`.
  const char* what() const noexcept override { return line_.c_str(); }
  /// All fields over several lines, as psql prints them.
  std::string Full() const;

 private:
  SqlState state_;
  std::string message_, detail_, hint_, line_;
  std::optional<int> position_;
  std::vector<std::string> context_;
};

}  // namespace tidemark::base
