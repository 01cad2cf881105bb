#include "temporal/resync.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

constexpr const char* kMirrored = R"sql(
SELECT d.id, d.schema_name, d.table_name
FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE j.publication IS NOT NULL AND d.tx_first IS NOT NULL AND d.tx_dropped IS NULL
ORDER BY d.schema_name, d.table_name
)sql";

constexpr const char* kLoad = R"sql(
SELECT r.id, d.schema_name, d.table_name, r.ended_at IS NOT NULL,
       (SELECT b.number FROM tidemark.basis b WHERE b.capture = r.capture),
       coalesce(r.puts, 0), coalesce(r.deletions, 0), coalesce(r.sqlstate, ''),
       coalesce(r.error, '')
FROM tidemark.resync r JOIN tidemark.dataset d ON d.id = r.dataset
WHERE r.id = ANY ($1::bigint[])
ORDER BY d.schema_name, d.table_name
)sql";

}  // namespace

std::vector<int64_t> RequestResync(pg::Connection& store,
                                   const std::vector<base::QualifiedName>& names) {
  const auto tables = store.Execute(kMirrored);
  std::vector<std::string> chosen;
  for (int i = 0; names.empty() && i < tables.rows(); ++i) chosen.push_back(tables.str(i, 0));
  for (const auto& name : names) {
    const size_t before = chosen.size();
    for (int i = 0; i < tables.rows(); ++i) {
      if (base::QualifiedName{tables.str(i, 1), tables.str(i, 2)} == name) {
        chosen.push_back(tables.str(i, 0));
      }
    }
    if (chosen.size() == before) {
      throw base::Error(base::kUndefinedTable,
                        fmt::format("table {} is not mirrored", name.Display()))
          .Hint("\"tidemark status\" lists the tables; a snapshot is read anew by \"tidemark "
                "capture\".");
    }
  }
  std::vector<int64_t> requests;
  pg::Transaction tx(store);  // all or none: the follower shows tables asked for together at once
  for (const auto& dataset : chosen) {
    requests.push_back(std::stoll(store.Value(
        "SELECT tidemark.request_resync($1, 'asked for by a person')", {dataset})));
  }
  std::move(tx).Commit();
  return requests;
}

std::vector<ResyncState> LoadResyncs(pg::Connection& store, const std::vector<int64_t>& requests) {
  const auto rows = store.Execute(kLoad, {fmt::format("{{{}}}", fmt::join(requests, ","))});
  std::vector<ResyncState> states;
  for (int i = 0; i < rows.rows(); ++i) {
    ResyncState state{.request = rows.int64(i, 0),
                      .table = {rows.str(i, 1), rows.str(i, 2)},
                      .ended = rows.boolean(i, 3),
                      .basis = std::nullopt,
                      .puts = rows.int64(i, 5),
                      .deletions = rows.int64(i, 6),
                      .sqlstate = rows.str(i, 7),
                      .error = rows.str(i, 8)};
    if (!rows.is_null(i, 4)) state.basis = rows.int64(i, 4);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace tidemark::temporal
