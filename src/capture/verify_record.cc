#include "capture/verify_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/identifier.h"

namespace tidemark::capture {

using nlohmann::json;

namespace {

constexpr const char* kWritable = R"sql(
SELECT NOT pg_catalog.pg_is_in_recovery()
       AND pg_catalog.current_setting('transaction_read_only') = 'off'
       AND pg_catalog.has_table_privilege('tidemark.verification', 'INSERT')
)sql";

constexpr const char* kBegin = R"sql(
WITH run AS (SELECT pg_catalog.nextval('tidemark.verification_run') AS run)
INSERT INTO tidemark.verification AS v (dataset, run)
SELECT d.id, r.run FROM pg_catalog.unnest('{{{datasets}}}'::integer[]) AS d(id), run r
ON CONFLICT (dataset) DO UPDATE
SET run = excluded.run, key_columns = NULL, reached = NULL, first_position = NULL,
    "position" = NULL, segments = 0, chunks = 0, source_rows = 0, mirror_rows = 0,
    differing = false, differences = '[]', not_compared = NULL, started_at = NULL,
    updated_at = excluded.updated_at, ended_at = NULL
RETURNING run
)sql";

constexpr const char* kContinue = R"sql(
SELECT v.run, v.dataset, d.schema_name, d.table_name,
       coalesce(pg_catalog.array_to_json(v.key_columns), '[]'),
       pg_catalog.array_to_json(v.reached), v.first_position, v."position", v.segments, v.chunks,
       v.source_rows, v.mirror_rows, v.differing, v.differences, v.not_compared,
       v.ended_at IS NOT NULL
FROM tidemark.verification v
JOIN tidemark.dataset d ON d.id = v.dataset
WHERE v.run = (SELECT pg_catalog.max(n.run)
               FROM tidemark.verification n JOIN tidemark.dataset e ON e.id = n.dataset
               WHERE e.journal = {journal}) AND d.journal = {journal}
ORDER BY v.dataset
)sql";

constexpr const char* kStore = R"sql(
UPDATE tidemark.verification
SET key_columns = {key_columns}, reached = {reached}, first_position = {first_position},
    "position" = {position}, segments = {segments}, chunks = {chunks},
    source_rows = {source_rows}, mirror_rows = {mirror_rows}, differing = {differing},
    differences = {differences}, not_compared = {not_compared},
    started_at = coalesce(started_at, pg_catalog.clock_timestamp()),
    updated_at = pg_catalog.clock_timestamp(),
    ended_at = CASE WHEN {ended} THEN pg_catalog.clock_timestamp() END
WHERE dataset = {dataset} AND run = {run}
)sql";

json DifferencesJson(const std::vector<RowDifference>& differences) {
  auto all = json::array();
  for (const auto& d : differences) {
    all.push_back({{"kind", static_cast<int>(d.kind)}, {"key", d.key}, {"columns", d.columns}});
  }
  return all;
}

std::vector<RowDifference> ReadDifferences(const std::string& text) {
  std::vector<RowDifference> differences;
  for (const auto& one : json::parse(text)) {
    differences.push_back({static_cast<RowDifference::Kind>(one["kind"].get<int>()),
                           one["key"].get<std::string>(),
                           one["columns"].get<std::vector<std::string>>()});
  }
  return differences;
}

std::string ArrayOrNull(const std::vector<std::string>& values, bool known) {
  return known ? base::QuoteLiteral(temporal::TextArray(values)) + "::text[]" : "NULL";
}

std::string LsnOrNull(base::Lsn lsn) {
  return lsn.valid() ? fmt::format("'{}'::pg_lsn", lsn.ToString()) : "NULL";
}

bool IsWritable(VerifyServer& store) { return store.Ask(kWritable).boolean(0, 0); }

}  // namespace

VerifyRecord VerifyRecord::Begin(VerifyServer& store,
                                 const std::vector<temporal::Dataset>& datasets) {
  if (datasets.empty() || !IsWritable(store)) return {store, 0};
  std::string ids;
  for (const auto& d : datasets) ids += fmt::format("{}{}", ids.empty() ? "" : ",", d.id);
  return {store, store.Ask(fmt::format(kBegin, fmt::arg("datasets", ids))).int64(0, 0)};
}

VerifyRecord VerifyRecord::Continue(VerifyServer& store, int journal,
                                    std::vector<RecordedTable>& tables) {
  const auto rows = store.Ask(fmt::format(kContinue, fmt::arg("journal", journal)));
  for (int i = 0; i < rows.rows(); ++i) {
    RecordedTable t;
    t.dataset = static_cast<int>(rows.int64(i, 1));
    t.table.name = {rows.str(i, 2), rows.str(i, 3)};
    t.key_columns = json::parse(rows.str(i, 4)).get<std::vector<std::string>>();
    if (!rows.is_null(i, 5)) t.reached = json::parse(rows.str(i, 5)).get<KeyBound>();
    if (!rows.is_null(i, 6)) t.table.first_position = base::Lsn::Parse(rows.text(i, 6));
    if (!rows.is_null(i, 7)) t.table.position = base::Lsn::Parse(rows.text(i, 7));
    t.table.segments = static_cast<int>(rows.int64(i, 8));
    t.table.chunks = rows.int64(i, 9);
    t.table.source_count = rows.int64(i, 10);
    t.table.mirror_count = rows.int64(i, 11);
    t.table.equal = !rows.boolean(i, 12);
    t.table.differences = ReadDifferences(rows.str(i, 13));
    t.table.not_compared = rows.str(i, 14);
    t.ended = rows.boolean(i, 15);
    tables.push_back(std::move(t));
  }
  return {store, tables.empty() || !IsWritable(store) ? 0 : rows.int64(0, 0)};
}

void VerifyRecord::Store(const RecordedTable& t) {
  if (run_ == 0) return;
  const auto& table = t.table;
  const auto differences =
      DifferencesJson(table.differences).dump(-1, ' ', false, json::error_handler_t::replace);
  store_->Ask(fmt::format(
      kStore, fmt::arg("key_columns", ArrayOrNull(t.key_columns, !t.key_columns.empty())),
      fmt::arg("reached", t.reached ? ArrayOrNull(*t.reached, true) : "NULL"),
      fmt::arg("first_position", LsnOrNull(table.first_position)),
      fmt::arg("position", LsnOrNull(table.position)), fmt::arg("segments", table.segments),
      fmt::arg("chunks", table.chunks), fmt::arg("source_rows", table.source_count),
      fmt::arg("mirror_rows", table.mirror_count), fmt::arg("differing", !table.equal),
      fmt::arg("differences", base::QuoteLiteral(differences) + "::jsonb"),
      fmt::arg("not_compared", table.not_compared.empty()
                                   ? "NULL"
                                   : base::QuoteLiteral(table.not_compared)),
      fmt::arg("ended", t.ended), fmt::arg("dataset", t.dataset), fmt::arg("run", run_)));
}

}  // namespace tidemark::capture
