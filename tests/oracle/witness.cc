#include "tests/oracle/witness.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "tests/oracle/test_decoding.h"

namespace tidemark::oracle {

using base::Deadline;
using base::Lsn;

namespace {

constexpr int kChangesAtOnce = 60'000;

}  // namespace

Witness::Witness(std::string dsn, std::string name) : dsn_(std::move(dsn)), name_(std::move(name)) {
  Source().Execute("SELECT pg_create_logical_replication_slot($1, 'test_decoding')", {name_});
}

Witness::~Witness() {
  try {
    Source().Execute("SELECT pg_drop_replication_slot($1)", {name_});
  } catch (const std::exception&) {
    // The cluster goes with it.
  }
}

pg::Connection& Witness::Source() {
  // A line broken by a crash of the server shows only when it is used.
  try {
    if (source_) source_->Execute("SELECT 1");
  } catch (const base::Error&) {
    source_.reset();
  }
  if (!source_) {
    source_.emplace(pg::Connection::Open(
        {.dsn = dsn_,
         .settings = {{"TimeZone", "UTC"}, {"DateStyle", "ISO"}, {"synchronous_commit", "on"}}},
        Deadline::After(std::chrono::seconds(20))));
  }
  return *source_;
}

Lsn Witness::Absorb() {
  // Only what has reached the disk can be decoded: a synchronous commit takes all before it along.
  Source().Execute("SELECT pg_logical_emit_message(true, 'witness', '')");
  const Lsn upto = Lsn::Parse(Source().Value("SELECT pg_current_wal_flush_lsn()"));
  while (ReadSome(upto)) {
  }
  return commits_.empty() ? upto : std::max(upto, commits_.back().end);
}

// A slot that was read before a crash of the source may give the same commits again.
bool Witness::ReadSome(Lsn upto) {
  const auto rows = Source().Execute(
      "SELECT lsn, xid, data FROM pg_logical_slot_get_changes($1, $2::pg_lsn, $3::integer, "
      "'include-xids', 'on', 'include-timestamp', 'on')",
      {name_, upto.ToString(), std::to_string(kChangesAtOnce)});
  const Lsn known = commits_.empty() ? Lsn() : commits_.back().end;
  std::optional<Commit> commit;
  for (int i = 0; i < rows.rows(); ++i) {
    const auto data = rows.text(i, 2);
    if (data.starts_with("BEGIN")) {
      commit.emplace();
      commit->xid = static_cast<uint32_t>(rows.int64(i, 1));
    } else if (data.starts_with("COMMIT")) {
      if (!commit) throw std::runtime_error("a COMMIT without its BEGIN");
      commit->end = Lsn::Parse(rows.text(i, 0));
      commit->committed_at = ReadCommitTime(data);
      if (commit->end > known) commits_.push_back(std::move(*commit));
      commit.reset();
    } else if (data.starts_with("message: ")) {
      if (auto said = ReadMessage(data); said &&
          commit) commit->changes.push_back(std::move(*said));
    } else if (data.starts_with("table ")) {
      if (!commit) throw std::runtime_error("a change outside a transaction");
      Change change = ReadChange(data);
      std::erase_if(change.tables,
                    [](const std::string& name) { return FindPublished(name) == nullptr; });
      if (change.tables.empty() || !PassesFilter(change)) continue;
      commit->changes.push_back(std::move(change));
    }
  }
  if (commit) throw std::runtime_error("a transaction came in parts");
  return rows.rows() > 0;
}

}  // namespace tidemark::oracle
