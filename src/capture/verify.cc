#include "capture/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/verify_cut.h"
#include "capture/verify_difference.h"
#include "capture/verify_query.h"
#include "capture/verify_record.h"
#include "capture/verify_server.h"
#include "pg/wait.h"
#include "source/postgres/slot.h"
#include "temporal/dataset.h"

namespace tidemark::capture {

using base::Error;
using base::Lsn;
using temporal::Dataset;

std::string RowDifference::Describe() const {
  switch (kind) {
    case Kind::kMissingInMirror:
      return fmt::format("key {}: missing in the mirror", key);
    case Kind::kOnlyInMirror:
      return fmt::format("key {}: only in the mirror", key);
    case Kind::kDifferentRow:
      return fmt::format("key {}: different row (columns {})", key, fmt::join(columns, ", "));
  }
  return key;
}

bool Verification::Equal() const {
  return std::all_of(tables.begin(), tables.end(), [](const TableComparison& table) {
    return table.equal || !table.not_compared.empty();
  });
}

namespace {

// The source's side of a consistent point: a transaction that sees the commits up to it.
Lsn AdoptSnapshot(VerifyServer& source, const VerifyRequest& request) {
  auto replication = pg::Connection::Open(
      {.dsn = request.source_dsn, .replication = true, .timeouts = false}, request.deadline,
      request.stop);
  const auto slot = source::CreateSlot(
      replication, source.connection(),
      {.name = fmt::format("tidemark_verify_{}", source.connection().server_pid()),
       .temporary = true,
       .deadline = request.deadline,
       .stop = request.stop,
       .on_wait = [](const std::vector<source::SlotBlocker>& blockers) {
         spdlog::info("verify: {}", blockers.front().Describe());
       }});
  source.Ask("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  source.Ask("SET TRANSACTION SNAPSHOT " + base::QuoteLiteral(slot.snapshot));
  return slot.consistent_point;
}

constexpr const char* kReceived = R"sql(
SELECT received_lsn, received_lsn >= '{}'::pg_lsn
FROM tidemark.resume
WHERE journal = {}
)sql";

// Nobody tells when something was received; the wait is the store's, in pieces that a stop
// request or the deadline interrupts.
constexpr const char* kMoment = R"sql(
SELECT pg_catalog.pg_sleep(0.05)
)sql";

void WaitUntilReceived(VerifyServer& mirror, const VerifyRequest& request, Lsn position) {
  const std::string sql = fmt::format(kReceived, position.ToString(), request.journal);
  for (;;) {
    const auto row = mirror.Ask(sql);
    if (row.rows() == 1 && row.boolean(0, 1)) return;
    if (request.deadline.left() < std::chrono::milliseconds(200)) {
      throw Error(base::kQueryCanceled, fmt::format("the mirror did not receive position {} in "
                                                    "time",
                                                    position.ToString()))
          .Detail(row.rows() == 1 ? fmt::format("It has received up to {}.", row.text(0, 0))
                                  : "It has not been copied yet.")
          .Hint("See \"tidemark status\" whether the capture is running.");
    }
    mirror.Ask(kMoment);
  }
}

constexpr const char* kSourceTable = R"sql(
SELECT n.nspname, c.relname, c.relkind
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = {}
)sql";

// A relation as one of the servers reads it, with the condition that all its rows fulfil; may be
// empty.
struct Rows {
  std::string relation, condition;
  std::string Where(const std::string& chunk) const {
    if (condition.empty() && chunk.empty()) return relation;
    if (condition.empty() || chunk.empty()) return relation + " WHERE " + condition + chunk;
    return fmt::format("{} WHERE {} AND {}", relation, condition, chunk);
  }
};

// What of the source is compared; nullopt when the table is gone. Children of inheritance are
// datasets of their own, partitions are not.
std::optional<Rows> SourceRows(VerifyServer& source, const Dataset& dataset) {
  const auto row = source.Ask(fmt::format(kSourceTable, dataset.source_oid));
  if (row.rows() == 0) return std::nullopt;
  const std::string table = base::QualifiedName{row.str(0, 0), row.str(0, 1)}.Quoted();
  Rows rows{.relation = (row.text(0, 2) == "p" ? "" : "ONLY ") + table, .condition = ""};
  if (!dataset.row_filter.empty()) rows.condition = fmt::format("({})", dataset.row_filter);
  return rows;
}

// Whether the table shows rows of others, too.
constexpr const char* kTxAt = R"sql(
SELECT tidemark.tx_at_position({}::regclass, '{}'::pg_lsn),
       EXISTS (SELECT FROM tidemark.inheritance i WHERE i.parent = {})
)sql";

Rows MirrorRows(VerifyServer& mirror, const Dataset& dataset, Lsn position) {
  const std::string table = dataset.name.Quoted();
  const auto row = mirror.Ask(
      fmt::format(kTxAt, base::QuoteLiteral(table), position.ToString(), dataset.id));
  return {.relation = fmt::format("tidemark.{}as_of_tx(NULL::{}, {}) AS t",
                                  row.boolean(0, 1) ? "only_" : "", table, row.int64(0, 0)),
          .condition = ""};
}

// TRUNCATE, rewriting ALTERs, and partitions that come and go change what an older snapshot sees.
constexpr const char* kReplaced = R"sql(
WITH RECURSIVE part AS (
  SELECT {oid}::oid AS relid
  UNION ALL
  SELECT i.inhrelid
  FROM part p
  JOIN pg_catalog.pg_class c ON c.oid = p.relid AND c.relkind = 'p'
  JOIN pg_catalog.pg_inherits i ON i.inhparent = p.relid
)
SELECT EXISTS (SELECT
               FROM part p
               JOIN pg_catalog.pg_class c ON c.oid = p.relid
               WHERE c.relfilenode <> coalesce(pg_catalog.pg_relation_filenode(c.oid), 0))
       OR EXISTS (SELECT t.relid::oid FROM pg_catalog.pg_partition_tree({oid}) t
                  EXCEPT SELECT relid FROM part)
       OR (SELECT count(*) FROM part) > 1
          AND EXISTS (SELECT relid FROM part
                      EXCEPT SELECT t.relid::oid FROM pg_catalog.pg_partition_tree({oid}) t)
)sql";

bool WasReplaced(VerifyServer& source, const Dataset& dataset) {
  return source.Ask(fmt::format(kReplaced, fmt::arg("oid", dataset.source_oid))).boolean(0, 0);
}

constexpr const char* kHashProbe = R"sql(
SELECT pg_catalog.hashtextextended('é', 0)
)sql";

// How many of the source's blocks make a chunk where there is no key to cut by: 16 MB.
constexpr int64_t kChunkBlocks = 2048;

// One run: the two servers, the point that the source's transaction sees, and what has been
// compared.
class Comparison {
 public:
  Comparison(VerifyServer& source, VerifyServer& mirror, const VerifyRequest& request,
             VerifyRecord& record)
      : source_(source), mirror_(mirror), request_(request), record_(record) {
    const auto probes = AskBoth(source_, kHashProbe, mirror_, kHashProbe);
    const bool agree = probes.source.text(0, 0) == probes.mirror.text(0, 0);
    hash_ = agree ? TextHash::kNative : TextHash::kPortable;
  }

  Lsn position() const { return position_; }

  /// Errors that concern one table leave it uncompared; others are thrown.
  void Compare(const Dataset& dataset, RecordedTable& recorded) {
    RenewPoint();
    source_.Ask("SAVEPOINT tidemark_table");
    try {
      Fill(dataset, recorded);
    } catch (const Error& error) {
      if (error.IsTransient() || error.state() == base::kQueryCanceled) throw;
      recorded.table.not_compared = error.message();
      recorded.table.equal = false;
    }
    // Gives back the table's lock, too.
    source_.Ask("ROLLBACK TO SAVEPOINT tidemark_table; RELEASE SAVEPOINT tidemark_table");
    recorded.ended = true;
    record_.Store(recorded);
  }

 private:
  void RenewPoint() {
    if (position_.valid() && !renewal_.passed()) return;
    if (position_.valid()) source_.Ask("ROLLBACK");
    position_ = AdoptSnapshot(source_, request_);
    renewal_ = base::Deadline::After(request_.point_age_max);
    WaitUntilReceived(mirror_, request_, position_);
  }

  void Fill(const Dataset& dataset, RecordedTable& recorded) {
    auto& table = recorded.table;
    const auto source_rows = SourceRows(source_, dataset);
    if (!source_rows) {
      table.not_compared = "it no longer exists on the source";
      return;
    }
    const Rows mirror_rows = MirrorRows(mirror_, dataset, position_);
    const auto cut = KeyCut::Of(source_, mirror_, dataset);
    const auto key = cut ? dataset.key_columns : std::vector<std::string>();
    if (!cut || recorded.key_columns != key) {  // what an earlier run did cannot be gone on with
      recorded.reached.reset();
      table = {.name = table.name};
    }
    table.name = dataset.name;
    table.equal = table.segments == 0 || table.equal;
    recorded.key_columns = key;
    ++table.segments;
    if (!table.first_position.valid()) table.first_position = position_;
    table.position = position_;
    const bool done = cut ? ByKey(dataset, *cut, *source_rows, mirror_rows, recorded)
                          : ByBlocks(dataset, *source_rows, mirror_rows, table);
    if (done) return;
    table.differences.clear();
    table.equal = false;
    table.not_compared = "it was truncated or rewritten on the source meanwhile; verify it again";
  }

  // False when the table's older rows cannot be read any more.
  bool ByKey(const Dataset& dataset, const KeyCut& cut, const Rows& source_rows,
             const Rows& mirror_rows, RecordedTable& recorded) {
    auto& table = recorded.table;
    for (bool more = true; more;) {
      const auto beyond = cut.Condition(recorded.reached, std::nullopt);
      const auto next =
          source_.Ask(cut.NextBound(source_rows.Where(beyond), request_.chunk_rows));
      std::optional<KeyBound> upper;
      if (next.rows() == 1) {
        upper.emplace();
        for (int i = 0; i < next.columns(); ++i) upper->push_back(next.str(0, i));
      }
      const auto chunk = cut.Condition(recorded.reached, upper);
      const VerifyQuery source_query(dataset, hash_, source_rows.Where(chunk));
      const VerifyQuery mirror_query(dataset, hash_, mirror_rows.Where(chunk));
      const auto totals = AskBoth(source_, source_query.Totals(), mirror_, mirror_query.Totals());
      const int64_t there = totals.source.int64(0, 0), here = totals.mirror.int64(0, 0);
      if (there != here || totals.source.text(0, 1) != totals.mirror.text(0, 1)) {
        if (!Differ(dataset, {source_, source_query, mirror_, mirror_query}, std::max(there, here),
                    table)) {
          return false;
        }
      }
      table.source_count += there;
      table.mirror_count += here;
      more = upper.has_value();
      if (more) recorded.reached = std::move(upper);
      EndChunk(recorded, more);
    }
    return true;
  }

  // The mirror in one statement: its blocks are not the source's.
  bool ByBlocks(const Dataset& dataset, const Rows& source_rows, const Rows& mirror_rows,
                TableComparison& table) {
    RecordedTable uncut;  // is begun anew after an interruption
    uncut.dataset = dataset.id;
    std::string checksum = "0";
    const int64_t blocks = std::max<int64_t>(BlocksOf(source_, dataset.source_oid), 1);
    for (int64_t from = 0; from < blocks; from += kChunkBlocks) {
      const bool last = from + kChunkBlocks >= blocks;
      // The last one takes what may have been added since: it is not seen, but costs nothing.
      const auto condition = last ? fmt::format("ctid >= '({},0)'::pg_catalog.tid", from)
                                  : BlockCondition(from, from + kChunkBlocks);
      const VerifyQuery query(dataset, hash_, source_rows.Where(condition));
      const auto totals = source_.Ask(query.Totals(checksum));
      table.source_count += totals.int64(0, 0);
      checksum = totals.str(0, 1);
      uncut.table = table;
      EndChunk(uncut, !last);
      ++table.chunks;
    }
    const VerifyQuery source_query(dataset, hash_, source_rows.Where(""));
    const VerifyQuery mirror_query(dataset, hash_, mirror_rows.Where(""));
    const auto totals = mirror_.Ask(mirror_query.Totals());
    table.mirror_count = totals.int64(0, 0);
    if (table.source_count == table.mirror_count && totals.text(0, 1) == checksum) return true;
    return Differ(dataset, {source_, source_query, mirror_, mirror_query},
                  std::max(table.source_count, table.mirror_count), table);
  }

  bool Differ(const Dataset& dataset, const VerifyPair& pair, int64_t rows,
              TableComparison& table) {
    table.equal = false;
    if (table.differences.size() < request_.differences_max) {
      for (auto& found : FindDifferences(dataset, pair, rows,
                                         request_.differences_max - table.differences.size())) {
        table.differences.push_back(std::move(found));
      }
    }
    return !WasReplaced(source_, dataset);
  }

  void EndChunk(RecordedTable& recorded, bool more) {
    ++recorded.table.chunks;
    if (more) record_.Store(recorded);
    base::KillPoint("verify.chunk_stored");
    if (request_.on_chunk) request_.on_chunk(recorded.table);
    if (!more || request_.pause <= std::chrono::milliseconds(0)) return;
    bell_.Wait(-1, false, request_.deadline.Min(base::Deadline::After(request_.pause)),
               request_.stop);
  }

  VerifyServer& source_;
  VerifyServer& mirror_;
  const VerifyRequest& request_;
  VerifyRecord& record_;
  Lsn position_;
  base::Deadline renewal_ = base::Deadline::Never();
  TextHash hash_ = TextHash::kNative;
  pg::Bell bell_;
};

std::vector<Dataset> ChooseDatasets(VerifyServer& mirror, const VerifyRequest& request) {
  auto datasets = temporal::LoadDatasets(mirror.connection(), request.journal);
  std::erase_if(datasets, [](const Dataset& d) { return !d.attached; });
  if (request.only.empty()) return datasets;
  std::vector<Dataset> chosen;
  for (const auto& name : request.only) {
    const auto found = std::find_if(datasets.begin(), datasets.end(),
                                    [&](const Dataset& d) { return d.name == name; });
    if (found == datasets.end()) {
      throw Error(base::kUndefinedTable, fmt::format("table {} is not mirrored", name.Display()));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace

Verification Verify(const VerifyRequest& request) {
  VerifyServer source(request.source_dsn, request.deadline, request.stop);
  VerifyServer mirror(request.store_dsn, request.deadline, request.stop);
  auto datasets = ChooseDatasets(mirror, request);
  std::vector<RecordedTable> earlier;
  auto record = request.resume ? VerifyRecord::Continue(mirror, request.journal, earlier)
                               : VerifyRecord::Begin(mirror, datasets);
  const auto known = [&](const Dataset& dataset) {
    return std::ranges::find(earlier, dataset.id, &RecordedTable::dataset);
  };
  if (request.resume) {
    std::erase_if(datasets, [&](const Dataset& d) { return known(d) == earlier.end(); });
  }
  Verification verification;
  Comparison comparison(source, mirror, request, record);
  for (const auto& dataset : datasets) {
    RecordedTable table;
    table.dataset = dataset.id;
    table.table.name = dataset.name;
    if (const auto one = known(dataset); one != earlier.end()) table = std::move(*one);
    if (!table.ended) {
      verification.continued += request.resume ? 1 : 0;
      comparison.Compare(dataset, table);
    }
    verification.position = std::max(verification.position, table.table.position);
    verification.tables.push_back(std::move(table.table));
    if (request.on_table) request.on_table(verification.tables.back());
  }
  return verification;
}

}  // namespace tidemark::capture
