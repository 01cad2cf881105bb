#include "temporal/status.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::temporal {

namespace {

constexpr const char* kLoadStatus = R"(
  SELECT pg_catalog.jsonb_build_object(
    'store', (
      SELECT pg_catalog.jsonb_build_object(
               'id', s.id,
               'database', pg_catalog.current_database(),
               'server_version', pg_catalog.current_setting('server_version'),
               'schema_version', s.schema_version,
               'fsync', pg_catalog.current_setting('fsync') = 'on',
               'full_page_writes', pg_catalog.current_setting('full_page_writes') = 'on')
      FROM tidemark.store AS s),
    'apply', 'replica',
    'last_basis', (
      SELECT pg_catalog.jsonb_build_object('number', b.number, 'system_time', b.system_time)
      FROM tidemark.basis AS b ORDER BY b.system_time DESC LIMIT 1),
    'mirrors', coalesce((
      SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'id', j.id,
               'name', j.name,
               'source', s.name,
               'publication', j.publication,
               'slot', j.slot,
               'state', coalesce(p.state, 'unknown'),
               'heartbeat', p.heartbeat,
               'heartbeat_age_seconds',
                 extract(epoch FROM pg_catalog.clock_timestamp() - p.heartbeat),
               'position', r.lsn,
               'received', r.received_lsn,
               'received_time', r.received_time,
               'source_position', p.source_lsn,
               'lag_bytes', greatest(p.source_lsn - r.received_lsn, 0),
               'lag_seconds', CASE
                 WHEN r.received_lsn >= p.source_lsn THEN 0
                 ELSE greatest(extract(epoch FROM pg_catalog.clock_timestamp() - r.received_time), 0)
               END,
               'retained_bytes', p.retained_bytes,
               'copied_rows', p.copied_rows,
               'copy_rows_expected', p.copy_rows_expected,
               'copied_bytes', p.copied_bytes,
               'last_basis', r.basis,
               'readable', r.journal IS NOT NULL,
               'problems', coalesce(p.problems, '[]'),
               'datasets', coalesce(d.datasets, '[]')) ORDER BY j.name)
      FROM tidemark.journal AS j
      JOIN tidemark.source AS s ON s.id = j.source
      LEFT JOIN tidemark.progress AS p ON p.journal = j.id
      LEFT JOIN tidemark.resume AS r ON r.journal = j.id
      LEFT JOIN LATERAL (
        SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                 'name', d.schema_name || '.' || d.table_name,
                 'strategy', d.strategy,
                 'keying', d.keying,
                 'key', d.key_columns,
                 'rows', v.live_rows,
                 'version', pg_catalog.encode(v.hash, 'hex'),
                 'readable', d.relid IS NOT NULL,
                 'dropped', d.tx_dropped IS NOT NULL,
                 'resync', a.resync)
               ORDER BY d.schema_name, d.table_name) AS datasets
        FROM tidemark.dataset AS d
        LEFT JOIN tidemark.version AS v ON v.dataset = d.id
        LEFT JOIN LATERAL (
          -- While it is read whole again it stands still.
          SELECT pg_catalog.jsonb_build_object(
                   'reason', y.reason, 'requested_at', y.requested_at, 'sqlstate', y.sqlstate,
                   'error', y.error) AS resync
          FROM tidemark.resync AS y WHERE y.dataset = d.id AND y.ended_at IS NULL
          ORDER BY y.id DESC LIMIT 1) AS a ON true
        WHERE d.journal = j.id) AS d ON true
      WHERE j.publication IS NOT NULL), '[]'),
    'datasets', coalesce((
      SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'declared', j.name,
               'name', d.schema_name || '.' || d.table_name,
               'source', s.name,
               'strategy', d.strategy,
               'key', d.key_columns,
               'state', coalesce(p.state, 'unknown'),
               'rows', v.live_rows,
               'version', pg_catalog.encode(v.hash, 'hex'),
               'readable', d.relid IS NOT NULL,
               'last_basis', r.basis,
               'extracted', m.extracted_from,
               'accepted', m.accepted_at,
               'last_failure', f.failure,
               'occurrences', o.occurrences) ORDER BY j.name)
      FROM tidemark.journal AS j
      JOIN tidemark.source AS s ON s.id = j.source
      LEFT JOIN tidemark.dataset AS d ON d.journal = j.id
      LEFT JOIN tidemark.progress AS p ON p.journal = j.id
      LEFT JOIN tidemark.resume AS r ON r.journal = j.id
      LEFT JOIN tidemark.version AS v ON v.dataset = d.id
      LEFT JOIN tidemark.basis_member AS m ON m.basis = r.basis AND m.dataset = d.id
      LEFT JOIN LATERAL (
        -- Kept until the dataset is published again.
        SELECT pg_catalog.jsonb_build_object(
                 'capture', x.capture, 'sqlstate', x.sqlstate, 'message', x.message,
                 'detail', x.detail, 'hint', x.hint, 'failed_at', x.failed_at) AS failure
        FROM tidemark.capture_failure AS x
        WHERE x.dataset = j.name AND (m.accepted_at IS NULL OR x.failed_at > m.accepted_at)
        ORDER BY x.capture DESC LIMIT 1) AS f ON true
      LEFT JOIN LATERAL (
        SELECT pg_catalog.jsonb_build_object(
                 'open', (SELECT pg_catalog.count(*) FROM tidemark.occurrence AS y
                          WHERE y.dataset = j.name AND y.state IN ('queued', 'running')),
                 'last_received', x.received_at, 'last_state', x.state,
                 'last_error', x.error) AS occurrences
        FROM tidemark.occurrence AS x WHERE x.dataset = j.name
        ORDER BY x.received_at DESC LIMIT 1) AS o ON true
      WHERE j.publication IS NULL), '[]'),
    'unclaimed_occurrences', coalesce((
      SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'dataset', u.dataset, 'open', u.open, 'since', u.since) ORDER BY u.dataset)
      FROM (
        SELECT o.dataset, pg_catalog.count(*) AS open, pg_catalog.min(o.received_at) AS since
        FROM tidemark.occurrence AS o
        WHERE o.state IN ('queued', 'running')
          AND NOT EXISTS (SELECT FROM tidemark.journal AS j WHERE j.name = o.dataset)
        GROUP BY o.dataset) AS u), '[]'),
    'webhooks', coalesce((
      SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
               'name', w.name,
               'last_event', w.basis || '-' || w.dataset,
               'delivered', w.delivered,
               'delivered_at', w.delivered_at,
               'attempted_at', w.attempted_at,
               'failures', w.failures,
               'error', w.error,
               'disabled_at', w.disabled_at) ORDER BY w.name)
      FROM tidemark.webhook AS w), '[]')))";

constexpr const char* kLoadBases = R"(
  SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
           'basis', b.number,
           'system_time', b.system_time,
           'journals', (
             SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                      'journal', j.name, 'tx_last', bj.tx_last) ORDER BY j.name)
             FROM tidemark.basis_journal AS bj
             JOIN tidemark.journal AS j ON j.id = bj.journal
             WHERE bj.system_time = b.system_time AND bj.basis = b.number),
           'members', m.members,
           'puts', m.puts,
           'deletions', m.deletions) ORDER BY b.system_time DESC), '[]')
  FROM (SELECT number, system_time FROM tidemark.basis
        ORDER BY system_time DESC LIMIT $1::bigint) AS b
  CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS members, coalesce(pg_catalog.sum(bm.puts), 0) AS puts,
           coalesce(pg_catalog.sum(bm.deletions), 0) AS deletions
    FROM tidemark.basis_member AS bm WHERE bm.basis = b.number) AS m)";

constexpr const char* kLoadEvidence = R"(
  SELECT pg_catalog.jsonb_build_object(
           'basis', b.number,
           'system_time', b.system_time,
           'capture', (
             SELECT pg_catalog.jsonb_build_object('id', c.id, 'kind', c.kind, 'reason', c.reason)
             FROM tidemark.capture AS c WHERE c.id = b.capture),
           'failures', coalesce((
             SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                      'dataset', f.dataset, 'sqlstate', f.sqlstate, 'message', f.message,
                      'detail', f.detail, 'hint', f.hint) ORDER BY f.dataset)
             FROM tidemark.capture_failure AS f WHERE f.capture = b.capture), '[]'),
           'members', coalesce((
             SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                      'dataset', d.schema_name || '.' || d.table_name,
                      'source_position', m.source_position,
                      'position', m."position",
                      'extracted_from', m.extracted_from,
                      'extracted_to', m.extracted_to,
                      'version', pg_catalog.encode(m.version, 'hex'),
                      'tx', m.tx,
                      'accepted_at', m.accepted_at,
                      'rows', m.live_rows,
                      'puts', m.puts,
                      'deletions', m.deletions) ORDER BY d.schema_name, d.table_name)
             FROM tidemark.basis_member AS m
             JOIN tidemark.dataset AS d ON d.id = m.dataset
             WHERE m.basis = b.number), '[]'))
  FROM tidemark.basis AS b
  WHERE b.number = $1::bigint)";

constexpr const char* kLoadReceived = R"(
  SELECT pg_catalog.count(*), pg_catalog.count(r.journal), pg_catalog.min(r.received_lsn)
  FROM tidemark.journal AS j
  LEFT JOIN tidemark.resume AS r ON r.journal = j.id
  WHERE j.publication IS NOT NULL AND ($1 = '' OR j.name = $1))";

}  // namespace

std::string LoadStatus(pg::Connection& store) { return store.Value(kLoadStatus); }

std::string LoadBases(pg::Connection& store, int64_t limit) {
  return store.Value(kLoadBases, {std::to_string(limit)});
}

std::optional<std::string> LoadEvidence(pg::Connection& store, int64_t basis) {
  const auto found = store.Execute(kLoadEvidence, {std::to_string(basis)});
  if (found.rows() == 0) return std::nullopt;
  return found.str(0, 0);
}

std::optional<base::Lsn> LoadReceived(pg::Connection& store, const std::string& journal) {
  const auto row = store.Execute(kLoadReceived, {journal});
  const auto mirrors = row.int64(0, 0);
  if (mirrors == 0 && !journal.empty()) {
    throw base::Error(base::kUndefinedObject,
                      fmt::format("the store has no mirror \"{}\"", journal));
  }
  if (mirrors == 0 || row.int64(0, 1) < mirrors) return std::nullopt;
  return base::Lsn::Parse(row.text(0, 2));
}

}  // namespace tidemark::temporal
