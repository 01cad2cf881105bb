#include "temporal/webhook.h"

#include "base/error.h"
#include "temporal/dataset.h"

namespace tidemark::temporal {

using base::Error;

namespace {

void RequireStored(const pg::Result& stored) {
  if (stored.affected() == 1) return;
  throw Error(base::kNotInPrerequisiteState, "another process has taken over this webhook");
}

EventId IdAt(const pg::Result& rows, int row, int column) {
  return {rows.int64(row, column), static_cast<int32_t>(rows.int64(row, column + 1))};
}

}  // namespace

void EnsureWebhook(pg::Connection& store, const std::string& name) {
  const auto newest = LoadNewestEventId(store);
  store.Execute(
      R"sql(
INSERT INTO tidemark.webhook (name, basis, dataset) VALUES ($1, $2::bigint, $3::integer)
ON CONFLICT (name) DO NOTHING
)sql",
      {name, std::to_string(newest.basis), std::to_string(newest.dataset)});
}

WebhookState LoadWebhook(pg::Connection& store, const std::string& name) {
  const auto row = store.Execute(
      R"sql(
SELECT w.basis, w.dataset, w.failures, w.disabled_at IS NOT NULL
FROM tidemark.webhook w WHERE w.name = $1
)sql",
      {name});
  if (row.rows() == 0) {
    throw Error(base::kNotInPrerequisiteState, "the webhook's row has been deleted");
  }
  return {.last = IdAt(row, 0, 0),
          .failures = static_cast<int>(row.int64(0, 2)),
          .disabled = row.boolean(0, 3)};
}

WebhookEvents LoadWebhookEvents(pg::Connection& store, EventId after,
                                const std::vector<std::string>& datasets, int limit) {
  // Before the events themselves: all up to the newest member are visible to the next statement.
  const auto kept = store.ExecutePrepared(
      R"sql(
SELECT h.basis, h.dataset, coalesce(n.basis, 0), coalesce(n.dataset, 0)
FROM tidemark.event_horizon h
LEFT JOIN LATERAL (
  SELECT m.basis, m.dataset FROM tidemark.basis_member m
  ORDER BY m.basis DESC, m.dataset DESC LIMIT 1) n ON true
)sql",
      {});
  WebhookEvents loaded{.events = {}, .seen = IdAt(kept, 0, 2), .gap = after < IdAt(kept, 0, 0)};
  const auto rows = store.ExecutePrepared(
      R"sql(
SELECT e.basis, e.dataset_id, e.dataset, e.relation, tidemark.event_text(e)
FROM tidemark.event e
WHERE (e.basis, e.dataset_id) > ($1::bigint, $2::integer)
  AND ($3::text[] = '{}'
       OR e.dataset = ANY ($3::text[]) OR e.relation = ANY ($3::text[])
       OR e.journal = ANY ($3::text[]))
ORDER BY e.basis, e.dataset_id
LIMIT $4::integer
)sql",
      {std::to_string(after.basis), std::to_string(after.dataset), TextArray(datasets),
       std::to_string(limit)});
  for (int i = 0; i < rows.rows(); ++i) {
    loaded.events.push_back({IdAt(rows, i, 0), rows.str(i, 2), rows.str(i, 3), rows.str(i, 4)});
  }
  return loaded;
}

void StoreDelivered(pg::Connection& store, const Lease& lease, const std::string& name,
                    EventId event) {
  RequireStored(store.ExecutePrepared(
      R"sql(
UPDATE tidemark.webhook
SET basis = $4::bigint, dataset = $5::integer, delivered = delivered + 1,
    delivered_at = pg_catalog.clock_timestamp(), attempted_at = pg_catalog.clock_timestamp(),
    failures = 0, error = NULL
WHERE name = $1
  AND EXISTS (SELECT FROM tidemark.lease l WHERE l.name = $2 AND l.fence = $3::bigint FOR SHARE)
)sql",
      {name, lease.name(), std::to_string(lease.fence()), std::to_string(event.basis),
       std::to_string(event.dataset)}));
}

void StoreSkipped(pg::Connection& store, const Lease& lease, const std::string& name,
                  EventId event) {
  RequireStored(store.Execute(
      R"sql(
UPDATE tidemark.webhook
SET basis = $4::bigint, dataset = $5::integer
WHERE name = $1
  AND EXISTS (SELECT FROM tidemark.lease l WHERE l.name = $2 AND l.fence = $3::bigint FOR SHARE)
)sql",
      {name, lease.name(), std::to_string(lease.fence()), std::to_string(event.basis),
       std::to_string(event.dataset)}));
}

void StoreFailed(pg::Connection& store, const Lease& lease, const std::string& name,
                 const std::string& error, bool disabled) {
  RequireStored(store.Execute(
      R"sql(
UPDATE tidemark.webhook
SET attempted_at = pg_catalog.clock_timestamp(), failures = failures + 1, error = $4,
    disabled_at = CASE WHEN $5::boolean THEN pg_catalog.clock_timestamp() END
WHERE name = $1
  AND EXISTS (SELECT FROM tidemark.lease l WHERE l.name = $2 AND l.fence = $3::bigint FOR SHARE)
)sql",
      {name, lease.name(), std::to_string(lease.fence()), error, disabled ? "true" : "false"}));
}

}  // namespace tidemark::temporal
