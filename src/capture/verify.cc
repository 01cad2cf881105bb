#include "capture/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "capture/verify_difference.h"
#include "capture/verify_query.h"
#include "capture/verify_server.h"
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
  auto replication = pg::Connection::Open({.dsn = request.source_dsn, .replication = true},
                                          request.deadline, request.stop);
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

// FROM of the source; nullopt when the table is gone. Children of inheritance are datasets of
// their own, partitions are not.
std::optional<std::string> SourceFrom(VerifyServer& source, const Dataset& dataset) {
  const auto row = source.Ask(fmt::format(kSourceTable, dataset.source_oid));
  if (row.rows() == 0) return std::nullopt;
  const std::string table = base::QualifiedName{row.str(0, 0), row.str(0, 1)}.Quoted();
  std::string from = (row.text(0, 2) == "p" ? "" : "ONLY ") + table;
  if (!dataset.row_filter.empty()) from += fmt::format(" WHERE ({})", dataset.row_filter);
  return from;
}

constexpr const char* kTxAt = R"sql(
SELECT tidemark.tx_at_position({}::regclass, '{}'::pg_lsn)
)sql";

std::string MirrorFrom(VerifyServer& mirror, const Dataset& dataset, Lsn position) {
  const std::string table = dataset.name.Quoted();
  const auto tx =
      mirror.Ask(fmt::format(kTxAt, base::QuoteLiteral(table), position.ToString())).int64(0, 0);
  return fmt::format("tidemark.as_of_tx(NULL::{}, {}) AS t", table, tx);
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

class Comparison {
 public:
  Comparison(VerifyServer& source, VerifyServer& mirror, const VerifyRequest& request, Lsn position)
      : source_(source), mirror_(mirror), request_(request), position_(position) {
    const auto probes = AskBoth(source_, kHashProbe, mirror_, kHashProbe);
    const bool agree = probes.source.text(0, 0) == probes.mirror.text(0, 0);
    hash_ = agree ? TextHash::kNative : TextHash::kPortable;
  }

  /// Errors that concern one table leave it uncompared; others are thrown.
  TableComparison Compare(const Dataset& dataset) {
    TableComparison table{.name = dataset.name};
    source_.Ask("SAVEPOINT tidemark_table");
    try {
      Fill(dataset, table);
    } catch (const Error& error) {
      if (error.IsTransient()) throw;
      table.not_compared = error.message();
    }
    // Gives back the table's lock, too.
    source_.Ask("ROLLBACK TO SAVEPOINT tidemark_table; RELEASE SAVEPOINT tidemark_table");
    return table;
  }

 private:
  void Fill(const Dataset& dataset, TableComparison& table) {
    const auto source_from = SourceFrom(source_, dataset);
    if (!source_from) {
      table.not_compared = "it no longer exists on the source";
      return;
    }
    const VerifyQuery source_query(dataset, hash_, *source_from);
    const VerifyQuery mirror_query(dataset, hash_, MirrorFrom(mirror_, dataset, position_));
    const auto totals = AskBoth(source_, source_query.Totals(), mirror_, mirror_query.Totals());
    table.source_count = totals.source.int64(0, 0);
    table.mirror_count = totals.mirror.int64(0, 0);
    table.equal = table.source_count == table.mirror_count &&
                  totals.source.text(0, 1) == totals.mirror.text(0, 1);
    if (table.equal) return;
    table.differences =
        FindDifferences(dataset, {source_, source_query, mirror_, mirror_query},
                        std::max(table.source_count, table.mirror_count), request_.differences_max);
    if (!WasReplaced(source_, dataset)) return;
    table.differences.clear();
    table.not_compared = "it was truncated or rewritten on the source meanwhile; verify it again";
  }

  VerifyServer& source_;
  VerifyServer& mirror_;
  const VerifyRequest& request_;
  Lsn position_;
  TextHash hash_ = TextHash::kNative;
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
  const auto datasets = ChooseDatasets(mirror, request);
  Verification verification{.position = AdoptSnapshot(source, request), .tables = {}};
  WaitUntilReceived(mirror, request, verification.position);
  Comparison comparison(source, mirror, request, verification.position);
  for (const auto& dataset : datasets) {
    verification.tables.push_back(comparison.Compare(dataset));
    if (request.on_table) request.on_table(verification.tables.back());
  }
  return verification;
}

}  // namespace tidemark::capture
