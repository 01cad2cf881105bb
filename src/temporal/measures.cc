#include "temporal/measures.h"

#include <charconv>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

double RealAt(const pg::Result& rows, int row, int column) {
  const auto text = rows.text(row, column);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    throw base::Error(base::kInternalError, "\"" + std::string(text) + "\" is not a number");
  }
  return value;
}

std::optional<double> IfKnown(const pg::Result& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::nullopt;
  return RealAt(rows, row, column);
}

constexpr const char* kStore = R"sql(
SELECT s.id, coalesce(b.number, 0),
       greatest(extract(epoch FROM pg_catalog.clock_timestamp() - b.system_time), 0),
       CASE WHEN pg_catalog.pg_is_in_recovery() THEN 0
            ELSE pg_catalog.pg_notification_queue_usage() END
FROM tidemark.store s
LEFT JOIN LATERAL (SELECT x.number, x.system_time FROM tidemark.basis x
                   ORDER BY x.system_time DESC LIMIT 1) b ON true
)sql";

// A heartbeat comes every second.
constexpr const char* kMirrors = R"sql(
SELECT j.name, s.name, coalesce(p.state, 'unknown'),
       coalesce(p.state IN ('streaming', 'copying')
                AND p.heartbeat > pg_catalog.clock_timestamp() - interval '30 seconds', false),
       r.journal IS NOT NULL,
       extract(epoch FROM pg_catalog.clock_timestamp() - p.heartbeat),
       greatest(p.source_lsn - r.received_lsn, 0),
       CASE WHEN r.received_lsn >= p.source_lsn THEN 0
            ELSE greatest(extract(epoch FROM pg_catalog.clock_timestamp() - r.received_time), 0)
       END,
       p.retained_bytes, p.slot_safe_bytes,
       greatest(extract(epoch FROM pg_catalog.clock_timestamp() - b.system_time), 0),
       coalesce(r.tx_last, 0), coalesce(p.failures, 0), p.log_free_bytes
FROM tidemark.journal j
JOIN tidemark.source s ON s.id = j.source
LEFT JOIN tidemark.progress p ON p.journal = j.id
LEFT JOIN tidemark.resume r ON r.journal = j.id
LEFT JOIN tidemark.basis b ON b.number = r.basis
WHERE j.publication IS NOT NULL
ORDER BY j.name
)sql";

// A first capture that fails leaves no dataset, but its failures count.
constexpr const char* kCaptures = R"sql(
SELECT coalesce(j.name, f.dataset), coalesce(s.name, ''), coalesce(d.strategy, ''),
       coalesce(r.captures, 0), coalesce(f.failures, 0), coalesce(r.capture_seconds, 0),
       greatest(extract(epoch FROM m.extracted_to - m.extracted_from), 0),
       greatest(extract(epoch FROM pg_catalog.clock_timestamp() - b.system_time), 0),
       EXISTS (SELECT FROM tidemark.capture_failure x
               WHERE x.dataset = coalesce(j.name, f.dataset)
                 AND (b.system_time IS NULL OR x.failed_at > b.system_time))
FROM (SELECT * FROM tidemark.journal x WHERE x.publication IS NULL) j
LEFT JOIN tidemark.source s ON s.id = j.source
LEFT JOIN tidemark.dataset d ON d.journal = j.id
LEFT JOIN tidemark.resume r ON r.journal = j.id
LEFT JOIN tidemark.basis b ON b.number = r.basis
LEFT JOIN tidemark.basis_member m ON m.basis = r.basis AND m.dataset = d.id
FULL JOIN tidemark.failure_count f ON f.dataset = j.name
WHERE j.id IS NOT NULL
   OR NOT EXISTS (SELECT FROM tidemark.journal x
                  WHERE x.name = f.dataset AND x.publication IS NOT NULL)
ORDER BY 1
)sql";

constexpr const char* kRows = R"sql(
SELECT CASE WHEN j.publication IS NULL OR j.single THEN j.name
            ELSE d.schema_name || '.' || d.table_name END,
       j.name, v.live_rows, v.puts, v.deletions
FROM tidemark.version v
JOIN tidemark.dataset d ON d.id = v.dataset
JOIN tidemark.journal j ON j.id = d.journal
ORDER BY 2, 1
)sql";

std::vector<MirrorMeasures> LoadMirrors(pg::Connection& store) {
  const auto rows = store.Execute(kMirrors);
  std::vector<MirrorMeasures> mirrors;
  for (int i = 0; i < rows.rows(); ++i) {
    mirrors.push_back({.name = rows.str(i, 0),
                       .source = rows.str(i, 1),
                       .state = rows.str(i, 2),
                       .alive = rows.boolean(i, 3),
                       .readable = rows.boolean(i, 4),
                       .heartbeat_age_seconds = IfKnown(rows, i, 5),
                       .lag_bytes = IfKnown(rows, i, 6),
                       .lag_seconds = IfKnown(rows, i, 7),
                       .retained_bytes = IfKnown(rows, i, 8),
                       .slot_safe_bytes = IfKnown(rows, i, 9),
                       .log_free_bytes = IfKnown(rows, i, 13),
                       .basis_age_seconds = IfKnown(rows, i, 10),
                       .commits = rows.int64(i, 11),
                       .failures = rows.int64(i, 12)});
  }
  return mirrors;
}

std::vector<CaptureMeasures> LoadCaptures(pg::Connection& store) {
  const auto rows = store.Execute(kCaptures);
  std::vector<CaptureMeasures> captures;
  for (int i = 0; i < rows.rows(); ++i) {
    captures.push_back({.dataset = rows.str(i, 0),
                        .source = rows.str(i, 1),
                        .strategy = rows.str(i, 2),
                        .captures = rows.int64(i, 3),
                        .failures = rows.int64(i, 4),
                        .capture_seconds = RealAt(rows, i, 5),
                        .last_capture_seconds = IfKnown(rows, i, 6),
                        .basis_age_seconds = IfKnown(rows, i, 7),
                        .failing = rows.boolean(i, 8)});
  }
  return captures;
}

std::vector<RowMeasures> LoadRows(pg::Connection& store) {
  const auto rows = store.Execute(kRows);
  std::vector<RowMeasures> measures;
  for (int i = 0; i < rows.rows(); ++i) {
    measures.push_back({.dataset = rows.str(i, 0),
                        .journal = rows.str(i, 1),
                        .live_rows = rows.int64(i, 2),
                        .puts = rows.int64(i, 3),
                        .deletions = rows.int64(i, 4)});
  }
  return measures;
}

}  // namespace

Measures LoadMeasures(pg::Connection& store) {
  pg::Transaction snapshot(store, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const auto head = store.Execute(kStore);
  Measures measures{.store_id = head.str(0, 0),
                    .last_basis = head.int64(0, 1),
                    .last_basis_age_seconds = IfKnown(head, 0, 2),
                    .notification_queue_usage = RealAt(head, 0, 3),
                    .mirrors = LoadMirrors(store),
                    .captures = LoadCaptures(store),
                    .rows = LoadRows(store)};
  std::move(snapshot).Commit();
  return measures;
}

}  // namespace tidemark::temporal
