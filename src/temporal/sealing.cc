#include "temporal/sealing.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "temporal/neighbours.h"

namespace tidemark::temporal {

using base::Error;

namespace {

// How many groups of rows by _from a sealed partition has. Within a group rows are ordered by _to,
// so the pages of a partition form a grid over both, of which a block-range index finds the part
// alive at an instant.
constexpr int kSlabs = 32;
constexpr int kPagesPerRange = 16;

// What cannot be sealed was rewritten in vain.
constexpr std::chrono::hours kRefusedFor{1};

// Retention drops whole partitions: none of several spans more than this part of it.
constexpr int64_t kSpansOfRetention = 8;

// Partitions number `first` to `last` as one; a single closed one where they are the same.
struct Group {
  std::string dataset, first, last, count, from, to, key;
  bool rewritten = false;
  std::string History() const { return "tidemark_history.d" + dataset; }
  std::string Name() const { return fmt::format("d{}_p{}", dataset, last); }
  std::string Sealed() const { return fmt::format("{}_p{}_sealed", History(), last); }
  std::string Members() const {
    return fmt::format("dataset = {} AND number BETWEEN {} AND {}", dataset, first, last);
  }
};

// One session seals at a time.
class Turn {
 public:
  explicit Turn(pg::Connection& store)
      : store_(&store),
        taken_(store.Execute("SELECT pg_catalog.pg_try_advisory_lock(" + Lock() + ")").boolean(0, 0)) {}
  ~Turn() {
    if (!taken_ || !store_->IsOpen()) return;
    try {
      store_->Execute("SELECT pg_catalog.pg_advisory_unlock(" + Lock() + ")");
    } catch (const Error& error) {  // the session's end lets it go
      spdlog::debug("sealing: {}", error.what());
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const { return taken_; }

 private:
  static std::string Lock() { return "6071219443104215634"; }
  pg::Connection* store_;
  bool taken_;
};

// What was rewritten is finished first.
constexpr const char* kRewritten = R"sql(
SELECT p.dataset, coalesce(p.rewritten_from, p.number), p.number
FROM tidemark.history_partition p
WHERE p.rewritten_by IS NOT NULL AND p.dataset::text <> ALL ($1::text[])
ORDER BY p.dataset, p.number LIMIT 1
)sql";

// When d's journal had published up to `tx`, an expression.
std::string PublishedAt(std::string_view tx) {
  return fmt::format(
      "(SELECT b.system_time FROM tidemark.basis_journal b WHERE b.journal = d.journal "
      "AND b.tx_last >= {} ORDER BY b.tx_last, b.system_time LIMIT 1)",
      tx);
}

// $1: whether it matters when transactions were published. $2: how long a closed one waits. $3: not of
// these datasets.
constexpr const char* kMeasured = R"sql(
SELECT p.dataset, p.number, p.sealed,
       coalesce(pg_catalog.pg_relation_size(to_regclass(
         pg_catalog.format('tidemark_history.d%s_p%s', p.dataset, p.number))), 0),
       CASE WHEN $1::boolean THEN (extract(epoch FROM {from}) * 1000000)::bigint END,
       CASE WHEN $1::boolean THEN (extract(epoch FROM {to}) * 1000000)::bigint END,
       CASE WHEN p.sealed THEN false
            ELSE coalesce({closed} <= pg_catalog.clock_timestamp() - $2::interval, true) END
FROM tidemark.history_partition p JOIN tidemark.dataset d ON d.id = p.dataset
WHERE p.tx_to IS NOT NULL AND p.dataset::text <> ALL ($3::text[])
ORDER BY p.dataset, p.number
)sql";

struct Chosen {
  std::string dataset;
  Neighbours partitions;
};

// Closed ones first, of whichever dataset but those; then sealed ones.
std::optional<Chosen> Choose(pg::Connection& store, const HistoryLimits& limits,
                             const std::vector<std::string>& passed) {
  const auto rewritten = store.Execute(kRewritten, {TextArray(passed)});
  if (rewritten.rows() > 0) {
    return Chosen{rewritten.str(0, 0), {static_cast<int>(rewritten.int64(0, 1)),
                                        static_cast<int>(rewritten.int64(0, 2))}};
  }
  MergeBounds bounds{.bytes_max = limits.merge_bytes, .span_us_max = {}};
  if (!limits.retentions.empty()) {
    const auto shortest = store.Execute(
        "SELECT (extract(epoch FROM min(r::interval)) * 1000000)::bigint "
        "FROM pg_catalog.unnest($1::text[]) AS r",
        {TextArray(limits.retentions)});
    bounds.span_us_max = shortest.int64(0, 0) / kSpansOfRetention;
  }
  const auto measured = store.Execute(
      fmt::format(kMeasured, fmt::arg("from", PublishedAt("p.tx_from")),
                  fmt::arg("to", PublishedAt("p.tx_to")),
                  fmt::arg("closed", PublishedAt("p.tx_to - 1"))),
      {bounds.span_us_max ? "true" : "false", fmt::format("{} s", limits.seal_after.count()),
       TextArray(passed)});
  const auto microseconds = [&](int row, int column) -> std::optional<int64_t> {
    if (measured.is_null(row, column)) return std::nullopt;
    return measured.int64(row, column);
  };
  std::optional<Chosen> merge;
  for (int row = 0; row < measured.rows();) {
    const auto dataset = measured.str(row, 0);
    std::vector<MeasuredPartition> closed, sealed;
    bool waited = false;
    for (; row < measured.rows() && measured.text(row, 0) == dataset; ++row) {
      auto& kind = measured.boolean(row, 2) ? sealed : closed;
      kind.push_back({.number = static_cast<int>(measured.int64(row, 1)),
                      .bytes = measured.int64(row, 3),
                      .from_us = microseconds(row, 4),
                      .to_us = microseconds(row, 5)});
      waited = waited || measured.boolean(row, 6);
    }
    if (const auto together = ToSealTogether(closed, waited, bounds)) {
      return Chosen{dataset, *together};
    }
    if (const auto chosen = merge ? std::nullopt : ToMerge(sealed, bounds)) {
      merge = Chosen{dataset, *chosen};
    }
  }
  return merge;
}

constexpr const char* kGroup = R"sql(
SELECT (SELECT count(*) FROM tidemark.history_partition n
        WHERE n.dataset = f.dataset AND n.number BETWEEN f.number AND l.number),
       f.tx_from, l.tx_to,
       coalesce((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(k), ', ')
                 FROM pg_catalog.unnest(d.key_columns) AS k), ''),
       l.rewritten_by IS NOT NULL
FROM tidemark.history_partition f
JOIN tidemark.history_partition l ON l.dataset = f.dataset
JOIN tidemark.dataset d ON d.id = f.dataset
WHERE f.dataset = $1 AND f.number = $2 AND l.number = $3
)sql";

std::optional<Group> Find(pg::Connection& store, const HistoryLimits& limits,
                          const std::vector<std::string>& passed) {
  const auto chosen = Choose(store, limits, passed);
  if (!chosen) return std::nullopt;
  Group group{.dataset = chosen->dataset, .first = std::to_string(chosen->partitions.first),
              .last = std::to_string(chosen->partitions.last)};
  const auto rows = store.Execute(kGroup, {group.dataset, group.first, group.last});
  if (rows.rows() == 0) return std::nullopt;  // retention has dropped one meanwhile
  group.count = rows.str(0, 0);
  group.from = rows.str(0, 1);
  group.to = rows.str(0, 2);
  group.key = rows.str(0, 3);
  group.rewritten = rows.boolean(0, 4);
  return group;
}

// The numbers of the group's partitions.
pg::Result MembersOf(pg::Connection& store, const Group& g) {
  return store.Execute("SELECT number FROM tidemark.history_partition WHERE " + g.Members() +
                       " ORDER BY number");
}

// The lock keeps those out that change closed versions in place.
void Rewrite(pg::Connection& store, const Group& g) {
  pg::Transaction tx(store);
  store.Execute(fmt::format(
      R"sql(
LOCK TABLE ONLY {history} IN SHARE MODE;
DROP TABLE IF EXISTS {sealed};
CREATE TABLE {sealed} (LIKE {history} INCLUDING DEFAULTS,
                       CONSTRAINT span CHECK (_to >= {from} AND _to < {to}))
)sql",
      fmt::arg("history", g.History()), fmt::arg("sealed", g.Sealed()), fmt::arg("from", g.from),
      fmt::arg("to", g.to)));
  const auto written = store.Execute(fmt::format(
      R"sql(
INSERT INTO {sealed}
SELECT h.*
FROM (SELECT pg_catalog.percentile_disc(ARRAY(SELECT i / {slabs}::float8
                                              FROM pg_catalog.generate_series(1, {slabs} - 1) AS i))
               WITHIN GROUP (ORDER BY _from) AS bounds
      FROM {history} WHERE _to >= {from} AND _to < {to}) s,
     {history} h
WHERE h._to >= {from} AND h._to < {to}
ORDER BY pg_catalog.width_bucket(h._from, s.bounds), h._to{key_after}
)sql",
      fmt::arg("history", g.History()), fmt::arg("sealed", g.Sealed()), fmt::arg("from", g.from),
      fmt::arg("to", g.to), fmt::arg("slabs", kSlabs),
      fmt::arg("key_after", g.key.empty() ? "" : ", " + g.key)));
  // What takes the place of partitions holds all that they hold.
  int64_t held = 0;
  const auto members = MembersOf(store, g);
  for (int i = 0; i < members.rows(); ++i) {
    held += store
                .Execute(fmt::format("SELECT count(*) FROM {}_p{}", g.History(), members.str(i, 0)))
                .int64(0, 0);
  }
  if (written.affected() != held) {
    throw Error(base::kDataCorrupted,
                fmt::format("partition {} cannot be sealed: {} of its {} row versions ended in "
                            "its transactions",
                            g.Name(), written.affected(), held))
        .Hint("It is read as it is; run \"tidemark verify --history\".");
  }
  store.Execute(fmt::format("CREATE INDEX ON {} USING brin (_from, _to) WITH (pages_per_range = {})",
                            g.Sealed(), kPagesPerRange));
  if (!g.key.empty()) {
    store.Execute(fmt::format("CREATE INDEX ON {} ({}, _to)", g.Sealed(), g.key));
  }
  store.Execute(
      "UPDATE tidemark.history_partition "
      "SET rewritten_by = pg_catalog.pg_current_xact_id(), rewritten_from = $3 "
      "WHERE dataset = $1 AND number = $2",
      {g.dataset, g.last, g.first});
  std::move(tx).Commit();
}

// A snapshot older than the rewrite would find the new partition empty. Frozen rows are seen by
// every snapshot, and rows can be frozen only when no older snapshot is left.
bool Freeze(pg::Connection& store, const Group& g) {
  store.Execute("VACUUM (FREEZE, ANALYZE) " + g.Sealed());
  return store
      .Execute(
          R"sql(
SELECT pg_catalog.age(c.relfrozenxid) < pg_catalog.age(p.rewritten_by::xid)
FROM pg_catalog.pg_class c, tidemark.history_partition p
WHERE c.oid = $1::regclass AND p.dataset = $2 AND p.number = $3
)sql",
          {g.Sealed(), g.dataset, g.last})
      .boolean(0, 0);
}

bool SwapIn(pg::Connection& store, const Group& g) {
  try {
    pg::Transaction tx(store);
    store.Execute(fmt::format(
        "SET LOCAL lock_timeout = '150ms'; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", g.History()));
    const auto members = MembersOf(store, g);
    if (std::to_string(members.rows()) != g.count) {  // retention has dropped some
      store.Execute(fmt::format(
          "DROP TABLE {}; UPDATE tidemark.history_partition SET rewritten_by = NULL "
          "WHERE dataset = {} AND number = {}",
          g.Sealed(), g.dataset, g.last));
      std::move(tx).Commit();
      return true;
    }
    for (int i = 0; i < members.rows(); ++i) {
      store.Execute(fmt::format("DROP TABLE {}_p{}", g.History(), members.str(i, 0)));
    }
    store.Execute(fmt::format(
        R"sql(
ALTER TABLE {sealed} INHERIT {history};
ALTER TABLE {sealed} RENAME TO {name};
DELETE FROM tidemark.history_partition WHERE {members} AND number < {last};
UPDATE tidemark.history_partition SET sealed = true, rewritten_by = NULL, tx_from = {from}
WHERE dataset = {dataset} AND number = {last}
)sql",
        fmt::arg("sealed", g.Sealed()), fmt::arg("history", g.History()),
        fmt::arg("name", g.Name()), fmt::arg("members", g.Members()), fmt::arg("last", g.last),
        fmt::arg("from", g.from), fmt::arg("dataset", g.dataset)));
    std::move(tx).Commit();
    return true;
  } catch (const Error& error) {
    if (error.state() != base::kLockNotAvailable) throw;
    return false;
  }
}

// What a group has to wait for: snapshots, as all others would, or those who use the dataset.
enum class Sealed { kDone, kAwaitsSnapshots, kAwaitsUsers };

Sealed Seal(pg::Connection& store, const Group& group) {
  try {
    if (!group.rewritten) Rewrite(store, group);
    if (!Freeze(store, group)) {
      spdlog::debug("sealing {} waits for older snapshots", group.Name());
      return Sealed::kAwaitsSnapshots;
    }
    constexpr int kTries = 20;
    for (int i = 0; i < kTries; ++i) {
      if (SwapIn(store, group)) {
        spdlog::debug("sealed {}", group.Name());
        return Sealed::kDone;
      }
    }
    spdlog::debug("sealing {} waits for its users", group.Name());
  } catch (const Error& error) {  // DiscardRewritten has ended it, or dropped what there was of it
    if (error.state() != base::kQueryCanceled && error.state() != base::kUndefinedTable) throw;
    spdlog::debug("sealing {} makes way for a change of its history", group.Name());
  }
  return Sealed::kAwaitsUsers;
}

}  // namespace

bool Sealer::SealOne(pg::Connection& store) {
  const Turn turn(store);
  if (!turn.taken()) return false;
  std::erase_if(refused_, [](const auto& each) { return each.second.passed(); });
  std::vector<std::string> passed;
  for (const auto& [dataset, until] : refused_) passed.push_back(dataset);
  while (const auto group = Find(store, limits_, passed)) {
    try {
      const auto sealed = Seal(store, *group);
      if (sealed != Sealed::kAwaitsUsers) return sealed == Sealed::kDone;
    } catch (const Error& error) {
      if (error.state() != base::kDataCorrupted) throw;
      spdlog::warn("{}", error.Full());
      refused_.insert_or_assign(group->dataset, base::Deadline::After(kRefusedFor));
    }
    passed.push_back(group->dataset);
  }
  return false;
}

void DiscardRewritten(pg::Connection& store, const Dataset& dataset) {
  store.Execute(
      R"sql(
SELECT pg_catalog.pg_cancel_backend(l.pid) FROM pg_catalog.pg_locks l
WHERE l.relation = $1::regclass AND l.mode = 'ShareLock' AND l.granted
  AND l.database = (SELECT oid FROM pg_catalog.pg_database
                    WHERE datname = pg_catalog.current_database())
)sql",
      {dataset.History()});
  store.Execute(fmt::format("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE", dataset.History()));
  const auto rewritten = store.Execute(
      "UPDATE tidemark.history_partition SET rewritten_by = NULL "
      "WHERE dataset = $1 AND rewritten_by IS NOT NULL RETURNING number",
      {std::to_string(dataset.id)});
  for (int i = 0; i < rewritten.rows(); ++i) {
    store.Execute(fmt::format("DROP TABLE IF EXISTS {}_p{}_sealed", dataset.History(),
                              rewritten.str(i, 0)));
  }
}

}  // namespace tidemark::temporal
