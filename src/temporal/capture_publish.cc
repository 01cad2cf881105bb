#include "temporal/capture_publish.h"

#include "base/kill_point.h"

namespace tidemark::temporal {

namespace {

constexpr const char* kMember = R"sql(
SELECT pg_catalog.encode(m.hash, 'hex'), m.live_rows
FROM tidemark.publish_member(
  $1::bigint, $2::timestamptz, $3::integer, $4::boolean, $5::bigint, pg_catalog.decode($6, 'hex'),
  $7::bigint, $8::bigint, $9::bigint, $10::timestamptz, $11::timestamptz, $12::jsonb, $13::pg_lsn,
  $14::jsonb) AS m
)sql";

constexpr const char* kJournal = R"sql(
SELECT tidemark.publish_journal(
  $1::bigint, $2::timestamptz, $3::integer, $4::bigint, $5::pg_lsn, $6::pg_lsn, $7::timestamptz,
  $8::tidemark.member[], $9::tidemark.member[])
)sql";

void PublishJournal(pg::Connection& store, const Basis& basis, const CapturedJournal& journal) {
  store.Execute("SELECT tidemark.check_lease($1, $2::bigint)",
                {journal.lease->name(), std::to_string(journal.lease->fence())});
  if (!journal.commits.empty()) StoreCommits(store, journal.journal, journal.commits);
  std::vector<Member> unchanged;
  for (const int dataset : journal.unchanged) unchanged.push_back({dataset, 0, 0, 0});
  store.ExecutePrepared(
      kJournal,
      {std::to_string(basis.number), basis.system_time, std::to_string(journal.journal),
       std::to_string(journal.tx_last), journal.position.ToString(), journal.received.ToString(),
       journal.received_time.ToString(),
       MembersText(journal.members, journal.extracted_from, journal.extracted_to),
       MembersText(unchanged, journal.extracted_from, journal.extracted_to)});
}

}  // namespace

Basis PublishCapture(pg::Transaction tx, const Lease& lease, int64_t capture,
                     CaptureContents& contents) {
  pg::Connection& store = tx.connection();
  const auto begun = store.Execute(
      "SELECT basis_number, basis_time FROM tidemark.begin_publish($1, $2::bigint, $3::bigint)",
      {lease.name(), std::to_string(lease.fence()), std::to_string(capture)});
  Basis basis{begun.int64(0, 0), begun.str(0, 1)};
  for (const auto& journal : contents.journals) PublishJournal(store, basis, journal);
  for (auto& member : contents.datasets) {
    const auto& t = member.transition;
    const auto published = store.ExecutePrepared(
        kMember,
        {std::to_string(basis.number), basis.system_time, std::to_string(member.dataset),
         member.changed ? "true" : "false", std::to_string(member.tx), t.digest,
         std::to_string(t.puts), std::to_string(t.deletions), std::to_string(t.rows_added),
         member.extracted_from.ToString(), member.extracted_to.ToString(), member.position,
         member.source_lsn ? pg::Parameter(member.source_lsn->ToString()) : std::nullopt,
         member.resume});
    member.version = published.str(0, 0);
    member.live_rows = published.int64(0, 1);
  }
  base::KillPoint("publish.before_commit");
  std::move(tx).Commit();
  base::KillPoint("publish.after_commit");
  return basis;
}

std::optional<Basis> FindCaptureBasis(pg::Connection& store, int64_t capture) {
  store.Execute("SELECT tidemark.settle()");
  const auto found = store.Execute(
      "SELECT number, system_time FROM tidemark.basis WHERE capture = $1",
      {std::to_string(capture)});
  if (found.rows() == 0) return std::nullopt;
  return Basis{found.int64(0, 0), found.str(0, 1)};
}

std::optional<DatasetState> LoadDatasetState(pg::Connection& store, int dataset) {
  const auto row = store.Execute(
      R"sql(
SELECT r.tx_last, v.live_rows, r."position"
FROM tidemark.dataset d
JOIN tidemark.resume r ON r.journal = d.journal
JOIN tidemark.version v ON v.dataset = d.id
WHERE d.id = $1
)sql",
      {std::to_string(dataset)});
  if (row.rows() == 0) return std::nullopt;
  return DatasetState{row.int64(0, 0), row.int64(0, 1), row.optional(0, 2)};
}

}  // namespace tidemark::temporal
