// One of the two servers that verify compares: its connection, with a session in which equal
// values have equal text, and what both are asked at the same time.
#pragma once

#include <stop_token>
#include <string>

#include "base/clock.h"
#include "pg/connection.h"

namespace tidemark::capture {

class VerifyServer {
 public:
  VerifyServer(const std::string& dsn, base::Deadline deadline, std::stop_token stop);
  /// Runs one statement, for which the time left until the deadline is allowed.
  pg::Result Ask(const std::string& sql);
  pg::Connection& connection() { return connection_; }

 private:
  base::Deadline deadline_;
  std::stop_token stop_;
  pg::Connection connection_;
};

struct BothAnswers {
  pg::Result source, mirror;
};

/// Runs the two statements at the same time. Throws what either throws, after both have ended.
BothAnswers AskBoth(VerifyServer& source, const std::string& source_sql, VerifyServer& mirror,
                    const std::string& mirror_sql);

}  // namespace tidemark::capture
