// What each statement cost a server since a moment: pg_stat_statements, longest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.h"

namespace tidemark::bench {

class StatementCosts {
 public:
  /// The line of postgresql.conf that it needs.
  static constexpr const char* kSetting =
      "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track = 'all'\n"
      "pg_stat_statements.track_planning = on";
  static void Install(pg::Connection& server);
  static void Reset(pg::Connection& server);
  static StatementCosts Load(pg::Connection& server);
  void Print() const;

 private:
  struct Statement {
    double calls, milliseconds, planning, rows, log_bytes, hits;
    std::string text;
  };
  std::vector<Statement> statements_;
};

}  // namespace tidemark::bench
