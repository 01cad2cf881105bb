#include "temporal/publish.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/kill_point.h"
#include "pg/copy.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {

namespace {

void WriteInt32(wire::CopyBinaryWriter& writer, uint32_t value) {
  char bytes[4];
  wire::StoreBigEndian(bytes, value);
  writer.WriteField(std::string_view(bytes, sizeof bytes));
}

}  // namespace

void StoreCommits(pg::Connection& store, int journal, const std::vector<UpstreamCommit>& commits) {
  pg::CopyIn copy(store,
                  "COPY tidemark.tx (journal, xid, tx, end_lsn, source_time, commit_time, origin) "
                  "FROM STDIN (FORMAT binary)");
  std::string buffer;
  wire::CopyBinaryWriter writer(buffer);
  writer.WriteHeader();
  for (const auto& commit : commits) {
    writer.WriteRow(7);
    WriteInt32(writer, static_cast<uint32_t>(journal));
    if (commit.xid == 0) {
      writer.WriteNull();
    } else {
      WriteInt32(writer, commit.xid);
    }
    writer.WriteI64(commit.tx);
    writer.WriteI64(static_cast<int64_t>(commit.end_lsn.value()));
    writer.WriteI64(commit.source_time.postgres_us());
    if (commit.commit_time) {
      writer.WriteI64(commit.commit_time->postgres_us());
    } else {
      writer.WriteNull();
    }
    if (commit.origin.empty()) {
      writer.WriteNull();
    } else {
      writer.WriteField(commit.origin);
    }
    if (buffer.size() > 100'000) {
      copy.Write(buffer);
      buffer.clear();
    }
  }
  writer.WriteTrailer();
  copy.Write(buffer);
  copy.Finish();
}

std::string MembersText(const std::vector<Member>& members, base::Timestamp extracted_from,
                        base::Timestamp extracted_to) {
  std::string text = "{";
  for (const auto& m : members) {
    text += fmt::format("{}\"({},{},{},{},\\\"{}\\\",\\\"{}\\\")\"", text.size() > 1 ? "," : "",
                        m.dataset, m.puts, m.deletions, m.rows_added,
                        extracted_from.ToString(), extracted_to.ToString());
  }
  return text + "}";
}

namespace {

constexpr const char* kPublish = R"sql(
SELECT basis_number, basis_time
FROM tidemark.publish($1::integer, $2, $3::bigint, $4::bigint, $5::bigint, $6::pg_lsn, $7::pg_lsn,
                      $8::timestamptz, $9::tidemark.member[])
)sql";

}  // namespace

Basis Publish(pg::Transaction tx, const Lease& lease, const NewBasis& basis_to_be) {
  pg::Connection& store = tx.connection();
  const auto& last = basis_to_be.commits.back();
  StoreCommits(store, basis_to_be.journal, basis_to_be.commits);
  const auto published = store.ExecutePrepared(
      kPublish,
      {std::to_string(basis_to_be.journal), lease.name(), std::to_string(lease.fence()),
       basis_to_be.capture ? pg::Parameter(std::to_string(*basis_to_be.capture)) : std::nullopt,
       std::to_string(last.tx), last.end_lsn.ToString(), basis_to_be.received.ToString(),
       basis_to_be.received_time.ToString(),
       MembersText(basis_to_be.members, basis_to_be.extracted_from, basis_to_be.extracted_to)});
  Basis basis{published.int64(0, 0), published.str(0, 1)};
  base::KillPoint("publish.before_commit");
  std::move(tx).Commit();
  base::KillPoint("publish.after_commit");
  return basis;
}

void StoreReceived(pg::Connection& store, const Lease& lease, int journal, base::Lsn received,
                   base::Timestamp received_time) {
  store.ExecutePrepared(
      "SELECT tidemark.receive($1::integer, $2, $3::bigint, $4::pg_lsn, $5::timestamptz)",
      {std::to_string(journal), lease.name(), std::to_string(lease.fence()), received.ToString(),
       received_time.ToString()});
}

std::optional<Resume> LoadResume(pg::Connection& store, int journal) {
  const auto rows = store.Execute(
      R"sql(
SELECT lsn, received_lsn,
       (extract(epoch FROM received_time - '2000-01-01 00:00+00') * 1000000)::bigint,
       tx_last, basis
FROM tidemark.resume WHERE journal = $1
)sql",
      {std::to_string(journal)});
  if (rows.rows() == 0) return std::nullopt;
  return Resume{base::Lsn::Parse(rows.text(0, 0)), base::Lsn::Parse(rows.text(0, 1)),
                base::Timestamp(rows.int64(0, 2)), rows.int64(0, 3), rows.int64(0, 4)};
}

void ResetPublishedTime(pg::Connection& store) {
  pg::Transaction tx(store);
  store.Execute("SELECT pg_catalog.pg_advisory_xact_lock(tidemark.publish_lock())");
  store.Execute(R"sql(
SELECT pg_catalog.setval('tidemark.published_time', coalesce(
  (SELECT (extract(epoch FROM b.system_time - '2000-01-01 00:00+00') * 1000000)::bigint
   FROM tidemark.basis b ORDER BY b.system_time DESC LIMIT 1), 0))
)sql");
  std::move(tx).Commit();
}

}  // namespace tidemark::temporal
