#include "capture/capture_journal.h"

#include <fmt/format.h>

#include "base/log.h"
#include "temporal/plane.h"
#include "temporal/stage.h"

namespace tidemark::capture {

using base::Error;

namespace {

void RefuseTaken(pg::Connection& store, const PlannedDataset& planned) {
  const auto taken = store.Execute(
      R"sql(
SELECT j.name, j.publication IS NOT NULL
FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE d.schema_name = $1 AND d.table_name = $2 AND j.name <> $3
UNION ALL
SELECT j.name, true FROM tidemark.journal j WHERE j.name = $3 AND j.publication IS NOT NULL
)sql",
      {planned.in_store.schema, planned.in_store.name, planned.name});
  if (taken.rows() > 0) {
    throw Error(base::kDuplicateObject,
                fmt::format("{} is already kept by {} \"{}\"", planned.in_store.Display(),
                            taken.boolean(0, 1) ? "mirror" : "dataset", taken.text(0, 0)))
        .Hint("Give the dataset another name, or another place with \"as\".");
  }
  const auto there = store.Execute(
      R"sql(
SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2
  AND NOT EXISTS (SELECT FROM tidemark.dataset d WHERE d.relid = c.oid)
)sql",
      {planned.in_store.schema, planned.in_store.name});
  if (there.rows() > 0) {
    throw Error(base::kDuplicateObject,
                fmt::format("the store has another relation {}", planned.in_store.Display()))
        .Hint("Choose another place for the dataset with \"as\".");
  }
}

}  // namespace

int EnsureDatasetJournal(pg::Connection& store, const PlannedDataset& planned) {
  const std::string& schema = planned.in_store.schema;
  if (schema.starts_with("tidemark") || schema.starts_with("pg_") ||
      schema == "information_schema") {
    throw Error(base::kInvalidName,
                fmt::format("a dataset cannot be kept in schema \"{}\"", schema))
        .Hint("Choose another place for the dataset with \"as\".");
  }
  RefuseTaken(store, planned);
  store.Execute(
      "INSERT INTO tidemark.source (name, kind) VALUES ($1, $2) "
      "ON CONFLICT (name) DO UPDATE SET kind = excluded.kind",
      {planned.source, planned.source_kind});
  return std::stoi(store.Value(
      R"sql(
INSERT INTO tidemark.journal AS j (name, source)
SELECT $1, s.id FROM tidemark.source s WHERE s.name = $2
ON CONFLICT (name) DO UPDATE SET source = excluded.source
RETURNING j.id
)sql",
      {planned.name, planned.source}));
}

std::optional<temporal::Dataset> FindAttached(pg::Connection& store, int journal) {
  for (auto& dataset : temporal::LoadDatasets(store, journal)) {
    if (dataset.attached) return std::move(dataset);
  }
  return std::nullopt;
}

void StoreStrategy(pg::Connection& store, int dataset, temporal::Strategy strategy) {
  store.Execute("UPDATE tidemark.dataset SET strategy = $2 WHERE id = $1 AND strategy <> $2",
                {std::to_string(dataset),
                 strategy == temporal::Strategy::kCursor ? "cursor" : "snapshot"});
}

int64_t BeginDatasetsCapture(pg::Connection& store, const temporal::Lease& lease) {
  return std::stoll(store.Value(
      "INSERT INTO tidemark.capture (kind, state, lease, fence) "
      "VALUES ('datasets', 'running', $1, $2) RETURNING id",
      {lease.name(), std::to_string(lease.fence())}));
}

void StoreFailure(pg::Connection& store, int64_t capture, const std::string& dataset,
                  const Error& error) {
  store.Execute(
      R"sql(
INSERT INTO tidemark.capture_failure (capture, dataset, sqlstate, message, detail, hint)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''))
ON CONFLICT (capture, dataset) DO UPDATE
SET sqlstate = excluded.sqlstate, message = excluded.message, detail = excluded.detail,
    hint = excluded.hint, failed_at = excluded.failed_at
)sql",
      {std::to_string(capture), dataset, error.state().str(), error.message(), error.detail(),
       error.hint()});
}

bool StillHeld(pg::Connection& store, const temporal::Lease& lease) {
  return store
             .Execute("SELECT FROM tidemark.lease WHERE name = $1 AND fence = $2",
                      {lease.name(), std::to_string(lease.fence())})
             .rows() == 1;
}

void ClearDeadCaptures(pg::Connection& store, const temporal::Lease& lease) {
  const auto dead = store.Execute(
      R"sql(
UPDATE tidemark.capture
SET state = 'abandoned', reason = 'cut short', ended_at = pg_catalog.clock_timestamp()
WHERE kind = 'datasets' AND state = 'running' AND lease = $1 AND fence < $2
RETURNING id
)sql",
      {lease.name(), std::to_string(lease.fence())});
  if (dead.rows() > 0) spdlog::info("an earlier capture was cut short: undoing it");
  temporal::DropDeadStages(store);
  const auto unpublished = store.Execute(R"sql(
SELECT DISTINCT d.journal FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE d.tx_first IS NULL AND j.publication IS NULL
)sql");
  for (int i = 0; i < unpublished.rows(); ++i) {
    ForgetUnpublished(store, static_cast<int>(unpublished.int64(i, 0)));
  }
}

void ForgetUnpublished(pg::Connection& store, int journal) {
  pg::Transaction tx(store);
  const auto tables = store.Execute(
      "SELECT id FROM tidemark.dataset WHERE journal = $1 AND tx_first IS NULL",
      {std::to_string(journal)});
  for (int i = 0; i < tables.rows(); ++i) {
    temporal::DropUnattached(store, static_cast<int>(tables.int64(i, 0)));
  }
  temporal::ForgetUnattached(store, journal);
  std::move(tx).Commit();
}

}  // namespace tidemark::capture
