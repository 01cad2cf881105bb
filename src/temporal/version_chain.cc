#include "temporal/version_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;

std::string RowHashSql(const pg::Connection& store, char kind,
                       const std::vector<std::string>& texts) {
  const bool utf8 = store.parameter("server_encoding") == "UTF8";
  // concat() leaves NULLs out, and takes at most a hundred arguments.
  constexpr size_t kColumnsMost = 32;
  std::string row = fmt::format("'{}'", kind);
  for (size_t i = 0; i < texts.size(); ++i) {
    row += i % kColumnsMost == 0 ? fmt::format("{} || pg_catalog.concat(", i == 0 ? "" : ")") : ", ";
    row += fmt::format(
        "pg_catalog.octet_length({1}), CASE WHEN {0} IS NULL THEN '-' ELSE ':' END, {0}", texts[i],
        utf8 ? texts[i] : fmt::format("pg_catalog.convert_to({}, 'UTF8')", texts[i]));
  }
  if (!texts.empty()) row += ")";
  return fmt::format("pg_catalog.sha256(pg_catalog.convert_to({}, 'UTF8'))", row);
}

std::string ComputeDigest(pg::Connection& store, const std::string& hashes) {
  store.Execute("DROP TABLE IF EXISTS pg_temp.row_hashes");
  store.Execute("CREATE TEMPORARY TABLE row_hashes ON COMMIT DROP AS " + hashes);
  return store.Value(R"sql(
SELECT pg_catalog.encode(pg_catalog.sha256(coalesce(
  pg_catalog.string_agg(g.digest, ''::bytea ORDER BY g.prefix), ''::bytea)), 'hex')
FROM (SELECT pg_catalog.substr(r.h, 1, 2) AS prefix,
             pg_catalog.sha256(pg_catalog.string_agg(r.h, ''::bytea ORDER BY r.h)) AS digest
      FROM pg_temp.row_hashes AS r GROUP BY 1) AS g
)sql");
}

namespace {

// A column as it was over some txs.
struct PastColumn {
  int64_t tx_from;
  std::optional<int64_t> tx_to;
  int number, position;
  std::string type_sql;
  std::optional<int> key_position;
};

struct Transition {
  int64_t puts = 0, deletions = 0, ended = 0;
  std::string digest;  // hex
};

std::vector<PastColumn> LoadPast(pg::Connection& store, int dataset) {
  const auto rows = store.Execute(
      R"sql(
SELECT tx_from, tx_to, number, position, type_sql, key_position
FROM tidemark.dataset_column WHERE dataset = $1 ORDER BY position, number, tx_from
)sql",
      {std::to_string(dataset)});
  std::vector<PastColumn> past;
  for (int i = 0; i < rows.rows(); ++i) {
    PastColumn c{.tx_from = rows.int64(i, 0),
                 .tx_to = {},
                 .number = static_cast<int>(rows.int64(i, 2)),
                 .position = static_cast<int>(rows.int64(i, 3)),
                 .type_sql = rows.str(i, 4),
                 .key_position = {}};
    if (!rows.is_null(i, 1)) c.tx_to = rows.int64(i, 1);
    if (!rows.is_null(i, 5)) c.key_position = static_cast<int>(rows.int64(i, 5));
    past.push_back(std::move(c));
  }
  return past;
}

// What a stored column is called now, and its present type.
struct StoredColumn {
  std::string name, type_sql;
};

std::map<int, StoredColumn> StoredColumns(const Dataset& dataset) {
  std::map<int, StoredColumn> stored;
  for (const auto& c : dataset.columns) stored[c.number] = {QuoteIdentifier(c.name), c.type_sql};
  for (const auto& c : dataset.retired) {
    stored[c.number] = {QuoteIdentifier(RetiredName(c.number)), c.type_sql};
  }
  return stored;
}

// The transitions of the txs in [first, end), during which the shape was the same.
void Recompute(pg::Connection& store, const Dataset& d, std::vector<PastColumn> shape,
               const std::string& first, const std::string& end,
               std::map<int64_t, Transition>& transitions) {
  const auto stored = StoredColumns(d);
  const auto text = [&](const PastColumn& c) {
    const auto& now = stored.at(c.number);
    return fmt::format("r.{}{}::pg_catalog.text", now.name,
                       now.type_sql == c.type_sql ? "" : "::" + c.type_sql);
  };
  std::vector<std::string> values, key;
  std::string same_key;
  for (const auto& c : shape) values.push_back(text(c));
  std::erase_if(shape, [](const PastColumn& c) { return !c.key_position; });
  std::sort(shape.begin(), shape.end(),
            [](const auto& a, const auto& b) { return *a.key_position < *b.key_position; });
  for (const auto& c : shape) {
    key.push_back(text(c));
    same_key += fmt::format(" AND p.{0} = r.{0}", stored.at(c.number).name);
  }
  const auto rows = store.Execute(fmt::format(
      R"sql(
WITH changed AS MATERIALIZED (
  SELECT r._from AS tx, 'P' AS kind, {put} AS h FROM {current} r
  WHERE r._from >= {first} AND r._from < {end}
  UNION ALL
  SELECT r._from, 'P', {put} FROM {history} r WHERE r._from >= {first} AND r._from < {end}
  UNION ALL
  SELECT r._to, 'D', {deletion} FROM {history} r
  WHERE r._to >= {first} AND r._to < {end}
    AND NOT EXISTS (SELECT FROM {current} p WHERE p._from = r._to{same_key})
    AND NOT EXISTS (SELECT FROM {history} p WHERE p._from = r._to{same_key})
), grouped AS (
  SELECT tx, pg_catalog.count(*) FILTER (WHERE kind = 'P') AS puts,
         pg_catalog.count(*) FILTER (WHERE kind = 'D') AS deletions,
         pg_catalog.substr(h, 1, 2) AS prefix,
         pg_catalog.sha256(pg_catalog.string_agg(h, ''::bytea ORDER BY h)) AS digest
  FROM changed GROUP BY tx, pg_catalog.substr(h, 1, 2)
)
SELECT tx, pg_catalog.sum(puts), pg_catalog.sum(deletions),
       pg_catalog.encode(pg_catalog.sha256(
         pg_catalog.string_agg(digest, ''::bytea ORDER BY prefix)), 'hex')
FROM grouped GROUP BY tx
)sql",
      fmt::arg("put", RowHashSql(store, 'P', values)), fmt::arg("deletion", RowHashSql(store, 'D', key)),
      fmt::arg("current", d.Current()), fmt::arg("history", d.History()),
      fmt::arg("same_key", same_key), fmt::arg("first", first), fmt::arg("end", end)));
  for (int i = 0; i < rows.rows(); ++i) {
    auto& t = transitions[rows.int64(i, 0)];
    t.puts = rows.int64(i, 1);
    t.deletions = rows.int64(i, 2);
    t.digest = rows.str(i, 3);
  }
}

std::map<int64_t, Transition> RecomputeAll(pg::Connection& store, const Dataset& d) {
  const auto past = LoadPast(store, d.id);
  std::set<int64_t> bounds;
  for (const auto& c : past) {
    bounds.insert(c.tx_from);
    if (c.tx_to) bounds.insert(*c.tx_to);
  }
  std::map<int64_t, Transition> transitions;
  for (auto bound = bounds.begin(); bound != bounds.end(); ++bound) {
    const auto next = std::next(bound);
    std::vector<PastColumn> shape;
    for (const auto& c : past) {
      if (c.tx_from <= *bound && (!c.tx_to || *c.tx_to > *bound)) shape.push_back(c);
    }
    Recompute(store, d, std::move(shape), std::to_string(*bound),
              next == bounds.end() ? "9223372036854775807" : std::to_string(*next), transitions);
  }
  const auto ended = store.Execute(
      fmt::format("SELECT _to, count(*) FROM {} GROUP BY _to", d.History()));
  for (int i = 0; i < ended.rows(); ++i) {
    transitions[ended.int64(i, 0)].ended = ended.int64(i, 1);
  }
  return transitions;
}

}  // namespace

ChainCheck CheckChain(pg::Connection& store, const Dataset& dataset) {
  ChainCheck check{.dataset = dataset.id, .name = dataset.name, .versions = 0, .breaks = {}};
  const auto id = std::to_string(dataset.id);
  // Rows and members as of one moment.
  pg::Transaction snapshot(store, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  auto transitions = RecomputeAll(store, dataset);
  const auto members = store.Execute(
      R"sql(
SELECT m.basis, m.tx, pg_catalog.encode(m.version, 'hex'), m.live_rows, m.puts, m.deletions,
       m.tx <= d.tx_retained
FROM tidemark.basis_member m JOIN tidemark.dataset d ON d.id = m.dataset
WHERE m.dataset = $1 ORDER BY m.basis
)sql",
      {id});
  std::string parent;  // hex
  int64_t tx = 0, live = 0;
  const auto broken = [&](int row, std::string what) {
    check.breaks.push_back({members.int64(row, 0), members.int64(row, 1), std::move(what)});
  };
  for (int i = 0; i < members.rows() && check.breaks.empty(); ++i) {
    const std::string version = members.str(i, 2);
    const int64_t member_tx = members.int64(i, 1);
    if (members.boolean(i, 6)) {  // pruned: taken as it stands
      transitions.erase(member_tx);
      parent = version;
      tx = member_tx;
      live = members.int64(i, 3);
      continue;
    }
    if (member_tx == tx) {
      if (version != parent) broken(i, "an unchanged dataset was admitted under another version");
      continue;
    }
    const Transition t = transitions[member_tx];
    transitions.erase(member_tx);
    live += t.puts - t.ended;
    if (t.puts != members.int64(i, 4) || t.deletions != members.int64(i, 5)) {
      broken(i, fmt::format("the transition had {} puts and {} deletions, but the rows show {} and "
                            "{}",
                            members.int64(i, 4), members.int64(i, 5), t.puts, t.deletions));
      continue;
    }
    if (live != members.int64(i, 3)) {
      broken(i, fmt::format("there were {} rows, but {} are found", members.int64(i, 3), live));
      continue;
    }
    const auto computed = store.Value(
        R"sql(
SELECT pg_catalog.encode(tidemark.dataset_version(
  pg_catalog.decode($1, 'hex'),
  CASE WHEN $2 = '' THEN pg_catalog.sha256('') ELSE pg_catalog.decode($2, 'hex') END,
  $3::bigint, $4::bigint, $5::bigint), 'hex')
)sql",
        {parent, t.digest, std::to_string(live), std::to_string(t.puts),
         std::to_string(t.deletions)});
    if (computed != version) {
      broken(i, fmt::format("the version is {}, but the rows give {}", version, computed));
      continue;
    }
    ++check.versions;
    parent = version;
    tx = member_tx;
  }
  if (check.breaks.empty() && !transitions.empty()) {
    check.breaks.push_back({0, transitions.begin()->first,
                            "there are row versions of a tx that was never published"});
  }
  if (check.breaks.empty() && members.rows() > 0) {
    const auto newest = store.Execute(
        "SELECT pg_catalog.encode(hash, 'hex'), live_rows, "
        "(SELECT pg_catalog.count(*) FROM " +
            dataset.Current() + ") FROM tidemark.version WHERE dataset = $1",
        {id});
    if (newest.rows() != 1 || newest.str(0, 0) != parent || newest.int64(0, 1) != live ||
        newest.int64(0, 2) != live) {
      broken(members.rows() - 1, "the newest version is not the end of the chain");
    }
  }
  return check;
}

std::vector<Dataset> LoadVersionedDatasets(pg::Connection& store) {
  const auto journals = store.Execute(R"sql(
SELECT DISTINCT d.journal FROM tidemark.dataset d JOIN tidemark.journal j ON j.id = d.journal
WHERE j.publication IS NULL AND d.tx_first IS NOT NULL ORDER BY 1
)sql");
  std::vector<Dataset> datasets;
  for (int i = 0; i < journals.rows(); ++i) {
    for (auto& dataset : LoadDatasets(store, static_cast<int>(journals.int64(i, 0)))) {
      if (dataset.attached) datasets.push_back(std::move(dataset));
    }
  }
  std::sort(datasets.begin(), datasets.end(),
            [](const Dataset& a, const Dataset& b) { return a.name < b.name; });
  return datasets;
}

}  // namespace tidemark::temporal
