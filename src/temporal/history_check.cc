#include "temporal/history_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tidemark::temporal {

using base::QuoteIdentifier;

namespace {

constexpr const char* kForever = "9223372036854775807";

// What is asked of one dataset, and where its faults are gathered.
class Examination {
 public:
  Examination(pg::Connection& store, const Dataset& dataset, size_t faults_max)
      : store_(store), dataset_(dataset), faults_max_(faults_max) {
    check_.name = dataset.name;
  }

  HistoryCheck Run() {
    pg::Transaction snapshot(store_, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    LoadJournal();
    CheckPeriods();
    CheckTransactions();
    for (const auto& era : LoadEras()) CheckOverlaps(era);
    CheckCounts();
    return std::move(check_);
  }

 private:
  // Txs [from, to) over which the key was made of the same columns, by their present names.
  struct Era {
    std::string from, to;
    std::vector<std::string> key;
  };

  void LoadJournal();
  void CheckPeriods();
  void CheckTransactions();
  std::vector<Era> LoadEras();
  void CheckOverlaps(const Era& era);
  void CheckCounts();
  void CheckMembers();

  std::string KeyText(const std::vector<std::string>& key) const;
  // Each version as (tx, begun, ended), once for either end that it has.
  std::string EndsByTx() const;
  pg::Result Ask(const char* sql) const;

  pg::Connection& store_;
  const Dataset& dataset_;
  size_t faults_max_;
  HistoryCheck check_;
  bool in_mirror_ = false;
  int64_t retained_ = 0, erased_ = 0;
};

constexpr const char* kJournal = R"sql(
SELECT j.publication IS NOT NULL, d.tx_retained,
       coalesce((SELECT pg_catalog.sum(e.versions)::bigint FROM tidemark.erasure e
                 WHERE e.dataset = d.id), 0)
FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE d.id = $1
)sql";

void Examination::LoadJournal() {
  const auto row = store_.Execute(kJournal, {std::to_string(dataset_.id)});
  in_mirror_ = row.boolean(0, 0);
  retained_ = row.int64(0, 1);
  erased_ = row.int64(0, 2);
}

// The whole row where there is no key.
std::string Examination::KeyText(const std::vector<std::string>& key) const {
  std::string list;
  for (const auto& name : key) list += (list.empty() ? "" : ", ") + QuoteIdentifier(name);
  if (key.empty()) list = dataset_.ColumnList();
  return fmt::format("pg_catalog.left(ROW({})::pg_catalog.text, 200)", list);
}

pg::Result Examination::Ask(const char* sql) const {
  // The rows of a table that came later were copied before its first tx was known.
  return store_.Execute(fmt::format(
      fmt::runtime(sql), fmt::arg("dataset", dataset_.id), fmt::arg("journal", dataset_.journal),
      fmt::arg("current", dataset_.Current()), fmt::arg("history", dataset_.History()),
      fmt::arg("first", dataset_.tx_first), fmt::arg("retained", retained_),
      fmt::arg("erased", erased_), fmt::arg("limit", faults_max_), fmt::arg("ends", EndsByTx()),
      fmt::arg("key", KeyText(dataset_.key_columns))));
}

std::string Examination::EndsByTx() const {
  return fmt::format(
      R"sql(
  SELECT greatest(v._from, {first}) AS tx, count(*) AS begun, 0::bigint AS ended
  FROM {current} v GROUP BY 1
  UNION ALL
  SELECT greatest(v._from, {first}), count(*), 0 FROM {history} v GROUP BY 1
  UNION ALL
  SELECT v._to, 0, count(*) FROM {history} v GROUP BY 1)sql",
      fmt::arg("first", dataset_.tx_first), fmt::arg("current", dataset_.Current()),
      fmt::arg("history", dataset_.History()));
}

constexpr const char* kPeriods = R"sql(
SELECT {key}, v._from, v._to FROM {history} v WHERE v._from >= v._to LIMIT {limit}
)sql";

void Examination::CheckPeriods() {
  const auto rows = Ask(kPeriods);
  for (int i = 0; i < rows.rows(); ++i) {
    check_.faults.push_back(fmt::format("a version of key {} begins at tx {} and ends at tx {}",
                                        rows.text(i, 0), rows.text(i, 1), rows.text(i, 2)));
  }
}

constexpr const char* kTransactions = R"sql(
SELECT c.tx, c.n, t.tx IS NOT NULL AND b.basis IS NOT NULL
FROM (SELECT e.tx, pg_catalog.sum(e.begun + e.ended)::bigint AS n FROM ({ends}) e GROUP BY e.tx) c
LEFT JOIN tidemark.tx t ON t.journal = {journal} AND t.tx = c.tx
LEFT JOIN LATERAL (SELECT x.basis FROM tidemark.basis_journal x
                   WHERE x.journal = {journal} AND x.tx_last >= c.tx
                   ORDER BY x.tx_last, x.system_time LIMIT 1) b ON true
LEFT JOIN tidemark.basis_member m ON m.basis = b.basis AND m.dataset = {dataset} AND m.changed
WHERE t.tx IS NULL OR m.dataset IS NULL
ORDER BY c.tx LIMIT {limit}
)sql";

void Examination::CheckTransactions() {
  const auto rows = Ask(kTransactions);
  for (int i = 0; i < rows.rows(); ++i) {
    check_.faults.push_back(fmt::format(
        "{} versions begin or end at tx {}, which {}", rows.text(i, 1), rows.text(i, 0),
        rows.boolean(i, 2) ? "changed nothing of this dataset" : "was never published"));
  }
}

constexpr const char* kKeyColumns = R"sql(
SELECT c.number, c.tx_from, c.tx_to
FROM tidemark.dataset_column c
WHERE c.dataset = $1 AND c.key_position IS NOT NULL ORDER BY c.key_position, c.tx_from
)sql";

std::vector<Examination::Era> Examination::LoadEras() {
  std::map<int64_t, std::string> names;
  for (const auto& c : dataset_.columns) names[c.number] = c.name;
  for (const auto& c : dataset_.retired) names[c.number] = RetiredName(c.number);
  const auto rows = store_.Execute(kKeyColumns, {std::to_string(dataset_.id)});
  std::set<int64_t> bounds;
  for (int i = 0; i < rows.rows(); ++i) {
    bounds.insert(rows.int64(i, 1));
    if (!rows.is_null(i, 2)) bounds.insert(rows.int64(i, 2));
  }
  std::vector<Era> eras;
  for (auto bound = bounds.begin(); bound != bounds.end(); ++bound) {
    const auto next = std::next(bound);
    Era era{.from = std::to_string(*bound),
            .to = next == bounds.end() ? kForever : std::to_string(*next),
            .key = {}};
    for (int i = 0; i < rows.rows(); ++i) {
      const bool in_force =
          rows.int64(i, 1) <= *bound && (rows.is_null(i, 2) || rows.int64(i, 2) > *bound);
      const auto name = names.find(rows.int64(i, 0));
      if (in_force && name != names.end()) era.key.push_back(name->second);
    }
    const bool last = next == bounds.end();
    if (last && dataset_.keying != Keying::kKey) continue;
    if (!era.key.empty()) eras.push_back(std::move(era));
  }
  return eras;
}

constexpr const char* kOverlaps = R"sql(
SELECT o.key, o.before_from, o.before_to, o._from, nullif(o._to, {forever})
FROM (
  SELECT {key_text} AS key, v._from, v._to,
         pg_catalog.lag(v._from) OVER w AS before_from, pg_catalog.lag(v._to) OVER w AS before_to
  FROM (SELECT {key}, c._from, {forever} AS _to FROM {current} c
        UNION ALL
        SELECT {key}, h._from, h._to FROM {history} h) v
  WHERE v._from < {era_to} AND v._to > {era_from} AND ({none_null})
  WINDOW w AS (PARTITION BY {key} ORDER BY v._to, v._from)) o
WHERE o.before_to > o._from
LIMIT {limit}
)sql";

// In the order of their ends, two versions of a key overlap only if two neighbours do.
void Examination::CheckOverlaps(const Era& era) {
  std::string key, none_null;
  for (const auto& name : era.key) {
    key += (key.empty() ? "" : ", ") + QuoteIdentifier(name);
    none_null += fmt::format("{}{} IS NOT NULL", none_null.empty() ? "" : " AND ",
                             QuoteIdentifier(name));
  }
  const auto rows = store_.Execute(
      fmt::format(kOverlaps, fmt::arg("forever", kForever), fmt::arg("key", key),
                  fmt::arg("key_text", KeyText(era.key)), fmt::arg("current", dataset_.Current()),
                  fmt::arg("history", dataset_.History()), fmt::arg("era_from", era.from),
                  fmt::arg("era_to", era.to), fmt::arg("none_null", none_null),
                  fmt::arg("limit", faults_max_)));
  for (int i = 0; i < rows.rows(); ++i) {
    const auto end = [](std::string_view tx) {
      return tx.empty() || tx == kForever ? "now" : fmt::format("tx {}", tx);
    };
    check_.faults.push_back(fmt::format(
        "two versions of key {} overlap: from tx {} to {} and from tx {} to {}", rows.text(i, 0),
        rows.text(i, 1), end(rows.text(i, 2)), rows.text(i, 3), end(rows.text(i, 4))));
  }
}

constexpr const char* kCounts = R"sql(
SELECT (SELECT count(*) FROM {current}), (SELECT count(*) FROM {history}),
       (SELECT v.live_rows FROM tidemark.version v WHERE v.dataset = {dataset})
)sql";

void Examination::CheckCounts() {
  const auto row = Ask(kCounts);
  check_.versions = row.int64(0, 0) + row.int64(0, 1);
  if (row.text(0, 0) != row.text(0, 2)) {
    check_.faults.push_back(fmt::format("{} rows are current, but its version counts {}",
                                        row.text(0, 0),
                                        row.is_null(0, 2) ? "none" : row.text(0, 2)));
  }
  CheckMembers();
}

// Rows that have gone by retention ended before the horizon, and are missing on both sides of it.
constexpr const char* kMembers = R"sql(
WITH step AS (
  SELECT e.tx, false AS published, e.begun, e.ended, NULL::bigint AS basis,
         NULL::bigint AS live_rows, NULL::bigint AS puts
  FROM ({ends}) e
  UNION ALL
  SELECT m.tx, true, 0, 0, m.basis, m.live_rows, m.puts
  FROM tidemark.basis_member m WHERE m.dataset = {dataset} AND m.changed
), total AS (
  SELECT s.*, pg_catalog.sum(s.begun - s.ended) OVER w AS alive,
         pg_catalog.sum(s.begun) OVER w AS begun_until
  FROM step s WINDOW w AS (ORDER BY s.tx, s.published, s.basis
                           ROWS UNBOUNDED PRECEDING)
), member AS (
  SELECT t.basis, t.tx, t.live_rows, t.alive, t.puts,
         t.begun_until - coalesce(pg_catalog.lag(t.begun_until) OVER (ORDER BY t.tx, t.basis), 0)
           AS begun
  FROM total t WHERE t.published
)
SELECT m.basis, m.tx, m.live_rows, m.alive, m.puts, m.begun,
       m.live_rows - m.alive BETWEEN 0 AND {erased}
FROM member m
WHERE m.tx >= {retained}
  AND (m.live_rows - m.alive NOT BETWEEN 0 AND {erased} OR m.begun > m.puts
       OR {each_put} AND m.tx > {retained} AND m.puts - m.begun > {erased})
ORDER BY m.tx, m.basis LIMIT {limit}
)sql";

void Examination::CheckMembers() {
  std::string sql = kMembers;
  const std::string place = "{each_put}";
  sql.replace(sql.find(place), place.size(), in_mirror_ ? "false" : "true");
  const auto rows = Ask(sql.c_str());
  for (int i = 0; i < rows.rows(); ++i) {
    check_.faults.push_back(
        rows.boolean(i, 6)
            ? fmt::format("basis {} put {} rows, but {} versions begin in it", rows.text(i, 0),
                          rows.text(i, 4), rows.text(i, 5))
            : fmt::format("at basis {} (tx {}) there were {} rows, but {} are found",
                          rows.text(i, 0), rows.text(i, 1), rows.text(i, 2), rows.text(i, 3)));
  }
}

}  // namespace

HistoryCheck CheckHistory(pg::Connection& store, const Dataset& dataset, size_t faults_max) {
  return Examination(store, dataset, faults_max).Run();
}

std::vector<Dataset> LoadAttachedDatasets(pg::Connection& store) {
  const auto journals = store.Execute("SELECT j.id FROM tidemark.journal j ORDER BY j.id");
  std::vector<Dataset> datasets;
  for (int i = 0; i < journals.rows(); ++i) {
    for (auto& dataset : LoadDatasets(store, static_cast<int>(journals.int64(i, 0)))) {
      if (dataset.attached) datasets.push_back(std::move(dataset));
    }
  }
  std::ranges::sort(datasets, [](const Dataset& a, const Dataset& b) { return a.name < b.name; });
  return datasets;
}

}  // namespace tidemark::temporal
