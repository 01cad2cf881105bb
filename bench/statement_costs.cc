#include "bench/statement_costs.h"

#include <fmt/format.h>

#include "bench/report.h"
#include "cli/text_table.h"

namespace tidemark::bench {

void StatementCosts::Install(pg::Connection& server) {
  server.Execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public");
}

void StatementCosts::Reset(pg::Connection& server) {
  server.Execute("SELECT public.pg_stat_statements_reset()");
}

StatementCosts StatementCosts::Load(pg::Connection& server) {
  const auto rows = server.Execute(R"sql(
SELECT calls, round(total_exec_time::numeric, 1), round(total_plan_time::numeric, 1), rows,
       wal_bytes, shared_blks_hit + local_blks_hit,
       substr(regexp_replace(query, '\s+', ' ', 'g'), 1, 100)
FROM public.pg_stat_statements
ORDER BY total_exec_time + total_plan_time DESC LIMIT 20
)sql");
  StatementCosts costs;
  const auto number = [&](int row, int column) { return std::stod(rows.str(row, column)); };
  for (int i = 0; i < rows.rows(); ++i) {
    costs.statements_.push_back({number(i, 0), number(i, 1), number(i, 2), number(i, 3),
                                 number(i, 4), number(i, 5), rows.str(i, 6)});
  }
  return costs;
}

void StatementCosts::Print() const {
  cli::TextTable table({"ms", "plan ms", "calls", "rows", "log MB", "blocks hit", "statement"});
  for (const auto& s : statements_) {
    table.Add({Cell(s.milliseconds, 0).text, Cell(s.planning, 0).text, Cell(s.calls, 0).text,
               Cell(s.rows, 0).text, Cell(s.log_bytes / 1e6, 1).text, Cell(s.hits, 0).text,
               s.text});
  }
  fmt::print("\n{}\n", table.ToString(2));
  std::fflush(stdout);
}

}  // namespace tidemark::bench
