#include "temporal/occurrence.h"

#include <fmt/format.h>

#include <array>

#include "temporal/dataset.h"

namespace tidemark::temporal {

using base::Error;

namespace {

Acceptance AcceptanceOf(std::string_view outcome) {
  static constexpr std::array<std::pair<std::string_view, Acceptance>, 4> names = {
      {{"accepted", Acceptance::kAccepted},
       {"replayed", Acceptance::kReplayed},
       {"limited", Acceptance::kLimited},
       {"unknown", Acceptance::kUnknown}}};
  for (const auto& [name, acceptance] : names) {
    if (outcome == name) return acceptance;
  }
  throw Error(base::kInternalError, fmt::format("unknown outcome \"{}\"", outcome));
}

void Unlock(pg::Connection& store, const OccurrenceClaim& claim) {
  store.Execute("SELECT pg_catalog.pg_advisory_unlock(tidemark.occurrence_lock($1))",
                {claim.dataset});
}

}  // namespace

Receipt AcceptOccurrence(pg::Connection& store, const Occurrence& occurrence, uint32_t per_minute) {
  const auto row = store.Execute(
      R"sql(
SELECT outcome, received, retry_seconds
FROM tidemark.accept_occurrence($1, $2, $3::timestamptz, $4::integer)
)sql",
      {occurrence.dataset, occurrence.message_id,
       occurrence.signed_at ? pg::Parameter(occurrence.signed_at->ToString()) : std::nullopt,
       std::to_string(per_minute)});
  Receipt receipt{.acceptance = AcceptanceOf(row.text(0, 0)), .received_at = row.str(0, 1)};
  if (receipt.acceptance == Acceptance::kLimited) receipt.retry_seconds = row.int64(0, 2);
  return receipt;
}

std::vector<std::string> LoadQueued(pg::Connection& store,
                                    const std::vector<std::string>& datasets) {
  const auto rows = store.Execute(
      R"sql(
SELECT o.dataset
FROM tidemark.occurrence o
WHERE o.dataset = ANY ($1::text[])
  AND o.state IN ('queued', 'running')
  AND (o.state = 'running' OR o.due_at <= pg_catalog.clock_timestamp())
GROUP BY o.dataset
ORDER BY pg_catalog.min(o.received_at)
)sql",
      {TextArray(datasets)});
  std::vector<std::string> queued;
  for (int i = 0; i < rows.rows(); ++i) queued.push_back(rows.str(i, 0));
  return queued;
}

std::vector<OccurrenceClaim> ClaimOccurrences(pg::Connection& store,
                                              const std::vector<std::string>& datasets) {
  const auto rows = store.Execute(
      R"sql(
SELECT claimed_dataset, claim_number, occurrences
FROM tidemark.claim_occurrences($1::text[])
)sql",
      {TextArray(datasets)});
  std::vector<OccurrenceClaim> claims;
  for (int i = 0; i < rows.rows(); ++i) {
    claims.push_back({rows.str(i, 0), rows.int64(i, 1), rows.int64(i, 2)});
  }
  return claims;
}

void SettleDone(pg::Connection& store, const OccurrenceClaim& claim, int64_t capture) {
  store.Execute(
      R"sql(
UPDATE tidemark.occurrence
SET state = 'done', ended_at = pg_catalog.clock_timestamp(), capture = $3,
    sqlstate = NULL, error = NULL
WHERE dataset = $1 AND claim = $2 AND state = 'running'
)sql",
      {claim.dataset, std::to_string(claim.number), std::to_string(capture)});
  Unlock(store, claim);
}

void SettleFailed(pg::Connection& store, const OccurrenceClaim& claim, const Error& error) {
  store.Execute(
      R"sql(
UPDATE tidemark.occurrence
SET state = 'failed', ended_at = pg_catalog.clock_timestamp(), sqlstate = $3, error = $4
WHERE dataset = $1 AND claim = $2 AND state = 'running'
)sql",
      {claim.dataset, std::to_string(claim.number), error.state().str(), error.message()});
  Unlock(store, claim);
}

void SettleQueued(pg::Connection& store, const OccurrenceClaim& claim,
                  const std::optional<Error>& error) {
  store.Execute(
      R"sql(
UPDATE tidemark.occurrence
SET state = 'queued', sqlstate = $3, error = $4,
    due_at = pg_catalog.clock_timestamp() + CASE
      WHEN $3::text IS NULL THEN interval '0'
      ELSE least(interval '1 second' * 2 ^ least(attempts - 1, 6), interval '1 minute')
    END
WHERE dataset = $1 AND claim = $2 AND state = 'running'
)sql",
      {claim.dataset, std::to_string(claim.number),
       error ? pg::Parameter(error->state().str()) : std::nullopt,
       error ? pg::Parameter(error->message()) : std::nullopt});
  Unlock(store, claim);
}

}  // namespace tidemark::temporal
