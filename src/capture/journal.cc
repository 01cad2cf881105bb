#include "capture/journal.h"

#include <fmt/format.h>

#include "base/error.h"

namespace tidemark::capture {

namespace {

void RefuseTaken(pg::Connection& store, const MirrorOptions& options) {
  const auto named = store.Execute(
      "SELECT FROM tidemark.journal WHERE name = $1 AND publication IS NULL", {options.name});
  if (named.rows() > 0) {
    throw base::Error(base::kDuplicateObject,
                      fmt::format("\"{}\" is already a dataset that is captured without a slot",
                                  options.name))
        .Hint("Give it another name, and drop the old one when it is of no more use.");
  }
  if (!options.only) return;
  const auto& place = options.only->in_store;
  const auto taken = store.Execute(
      R"sql(
SELECT j.name FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE d.schema_name = $1 AND d.table_name = $2 AND j.name <> $3
)sql",
      {place.schema, place.name, options.name});
  if (taken.rows() > 0) {
    throw base::Error(base::kDuplicateObject, fmt::format("{} is already kept by \"{}\"",
                                                          place.Display(), taken.text(0, 0)))
        .Hint("Give the dataset another place with \"as\".");
  }
}

}  // namespace

Journal EnsureJournal(pg::Connection& store, const MirrorOptions& options) {
  RefuseTaken(store, options);
  store.Execute("INSERT INTO tidemark.source (name) VALUES ($1) ON CONFLICT (name) DO NOTHING",
                {options.name});
  store.Execute(
      R"sql(
INSERT INTO tidemark.journal (name, source, publication, slot, single)
SELECT $1, s.id, $2, $3, $4 FROM tidemark.source s WHERE s.name = $1
ON CONFLICT (name) DO UPDATE
SET publication = excluded.publication, slot = excluded.slot, single = excluded.single
)sql",
      {options.name, options.publication, options.slot, options.only ? "true" : "false"});
  const auto row = store.Execute(
      R"sql(
SELECT j.id, coalesce(s.system_identifier, ''), coalesce(s.database_name, ''),
       coalesce(s.timeline, 0), coalesce(s.timeline_history, '')
FROM tidemark.journal j JOIN tidemark.source s ON s.id = j.source WHERE j.name = $1
)sql",
      {options.name});
  return {static_cast<int>(row.int64(0, 0)), options.name, options.publication, options.slot,
          row.str(0, 1), row.str(0, 2), static_cast<uint32_t>(row.int64(0, 3)), row.str(0, 4)};
}

void StoreSourceIdentity(pg::Connection& store, const Journal& journal,
                         const source::ServerFacts& facts, const source::LogPlace& log) {
  store.Execute(
      R"sql(
UPDATE tidemark.source
SET system_identifier = $2, timeline = $3, timeline_history = $4, database_name = $5,
    server_version = $6, encoding = $7
WHERE name = $1
)sql",
      {journal.name, log.system_identifier, std::to_string(log.timeline), log.history,
       facts.database, std::to_string(facts.version_number), facts.encoding});
}

int64_t BeginCapture(pg::Connection& store, int journal, const std::string& kind,
                     const std::string& slot) {
  return std::stoll(store.Value(
      "INSERT INTO tidemark.capture (journal, kind, state, slot) VALUES ($1, $2, 'running', $3) "
      "RETURNING id",
      {std::to_string(journal), kind, slot}));
}

void EndCapture(pg::Connection& store, int64_t capture, const std::string& state,
                const std::string& reason) {
  store.Execute(
      "UPDATE tidemark.capture SET state = $2, reason = nullif($3, ''), "
      "ended_at = pg_catalog.clock_timestamp() WHERE id = $1",
      {std::to_string(capture), state, reason});
}

std::optional<UnfinishedCopy> FindUnfinishedCopy(pg::Connection& store, int journal) {
  const auto rows = store.Execute(
      "SELECT id, coalesce(slot, '') FROM tidemark.capture "
      "WHERE journal = $1 AND kind = 'copy' AND state = 'running' ORDER BY id DESC LIMIT 1",
      {std::to_string(journal)});
  if (rows.rows() == 0) return std::nullopt;
  return UnfinishedCopy{rows.int64(0, 0), rows.str(0, 1)};
}

}  // namespace tidemark::capture
