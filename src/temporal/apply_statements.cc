#include "temporal/apply_statements.h"

#include <fmt/format.h>

#include "base/identifier.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;

ApplyStatements StatementsFor(const Dataset& d) {
  ApplyStatements statements;
  ApplyStatements* const s = &statements;
  s->columns = d.columns.size();
  s->all_binary = d.AllBinary();
  const std::string current = d.Current();
  const std::string history = d.OpenHistory();
  const std::string stage = fmt::format("pg_temp.stage_{}", d.id);
  const std::string found = fmt::format("pg_temp.found_{}", d.id);
  const std::string versions = fmt::format("pg_temp.versions_{}", d.id);
  const std::string names = d.ColumnList();
  const auto place = [](size_t i) { return fmt::format("c{}", i + 1); };
  const auto separated = [](const std::string& list) { return list.empty() ? list : list + ", "; };

  // A column whose type has no binary form travels as text and is cast here.
  std::string definitions, places, values, sets, sets_keeping;
  for (size_t i = 0; i < d.columns.size(); ++i) {
    const auto& column = d.columns[i];
    const auto name = QuoteIdentifier(column.name);
    const auto cast = column.binary ? "" : "::" + column.type_sql;
    const auto comma = i == 0 ? "" : ", ";
    definitions += fmt::format("{}{} {}", comma, place(i), column.binary ? column.type_sql : "text");
    places += comma + place(i);
    values += fmt::format("{}v.{}{}", comma, place(i), cast);
    sets += fmt::format("{}{} = s.{}{}", comma, name, place(i), cast);
    sets_keeping += fmt::format(
        "{0}{1} = CASE WHEN s._kept IS NOT NULL AND pg_catalog.get_bit(s._kept, {2}) = 1 "
        "THEN c.{1} ELSE s.{3}{4} END",
        comma, name, i, place(i), cast);
  }
  // What the source no longer has: a row's older versions keep it, its newer ones never get it.
  for (const auto& column : d.retired) {
    const auto unset =
        fmt::format("{}{} = NULL", sets.empty() ? "" : ", ", QuoteIdentifier(RetiredName(column.number)));
    sets += unset;
    sets_keeping += unset;
  }
  const std::string stored = d.StoredColumnList();
  const std::string stored_current = d.StoredColumnList("c.");
  const auto defined = separated(definitions);
  const bool multiset = d.keying == Keying::kMultiset;
  const std::string staged = multiset ? "_ord, _close, _hash"
                                      : separated(places) + "_ord, _close, _new, _kept, _wanted";
  s->staged_columns = multiset ? 3 : d.columns.size() + 5;
  // They outlive transactions: to have them emptied at each commit costs up to a millisecond for each
  // that the session has, whether it was used or not.
  const auto make = [&](const std::string& table, const std::string& columns) {
    s->create += fmt::format("DROP TABLE IF EXISTS {0}; CREATE TEMPORARY TABLE {0} ({1}); ", table,
                             columns);
    s->truncate_staged += (s->truncate_staged.empty() ? "TRUNCATE " : ", ") + table;
  };
  make(stage, multiset ? "_ord integer, _close bigint, _hash uuid"
                       : defined + "_ord integer, _close bigint, _new bigint, _kept bytea, "
                                   "_wanted boolean");
  std::string others;
  if (multiset) {
    make(found, "_ord integer, _close bigint, _ctid tid");
    others = fmt::format("WITH f AS (DELETE FROM {}) ", found);
  }
  if (!s->all_binary) {
    make(versions, defined + "_from bigint, _to bigint, _hash uuid");
    others += fmt::format("{} v AS (DELETE FROM {}) ", others.empty() ? "WITH" : ",", versions);
  }
  s->delete_staged = fmt::format("{}DELETE FROM {}", others, stage);
  s->copy_stage = fmt::format("COPY {} ({}) FROM STDIN (FORMAT binary)", stage, staged);

  // That a current row and a staged one are of one key.
  std::string matching, shown;
  for (const size_t i : d.KeyPositions()) {
    const auto& column = d.columns[i];
    matching += fmt::format("{}c.{} = s.{}{}", matching.empty() ? "" : " AND ",
                            QuoteIdentifier(column.name), place(i),
                            column.binary ? "" : "::" + column.type_sql);
    shown += fmt::format("{}{} || coalesce(s.{}::text, 'null')", shown.empty() ? "" : " || ', ' || ",
                         base::QuoteLiteral(base::DisplayIdentifier(column.name) + "="), place(i));
  }
  if (multiset) {
    // Of equal rows any will do: as many are fetched as have gone, once for all of them.
    s->find = fmt::format(
        R"sql(
INSERT INTO {found}
SELECT g.ords[c.n], g.closes[c.n], c._ctid
FROM (SELECT s._hash, pg_catalog.array_agg(s._ord) AS ords, pg_catalog.array_agg(s._close) AS closes
      FROM (SELECT * FROM {stage} ORDER BY _hash, _ord) s GROUP BY s._hash) AS g
CROSS JOIN LATERAL (
  SELECT k._ctid, pg_catalog.row_number() OVER () AS n
  FROM (SELECT k.ctid AS _ctid FROM {current} k WHERE k._hash = g._hash
        LIMIT pg_catalog.cardinality(g.ords)) AS k) AS c
)sql",
        fmt::arg("found", found), fmt::arg("stage", stage), fmt::arg("current", current));
    s->find_missing = fmt::format(
        "SELECT 'the whole row' FROM {} s WHERE NOT EXISTS (SELECT FROM {} f WHERE f._ord = s._ord) "
        "LIMIT 1",
        stage, found);
    s->removed_to_history = fmt::format(
        "INSERT INTO {} ({}_from, _to) SELECT {}c._from, f._close FROM {} f JOIN {} c "
        "ON c.ctid = f._ctid WHERE c._from < f._close",
        history, separated(stored), separated(stored_current), found, current);
    s->remove = fmt::format("DELETE FROM {} c USING {} f WHERE c.ctid = f._ctid", current, found);
  } else if (!matching.empty()) {
    s->find_missing = fmt::format(
        "SELECT {} FROM {} s WHERE NOT EXISTS (SELECT FROM {} c WHERE {}) ORDER BY s._ord LIMIT 1",
        shown, stage, current, matching);
    std::string fetched;
    for (const auto& column : d.columns) {
      fetched += fmt::format(", c.{}{}", QuoteIdentifier(column.name), column.binary ? "" : "::text");
    }
    s->fetch_kept = fmt::format(
        "COPY (SELECT s._ord{} FROM {} s JOIN {} c ON {} WHERE s._wanted) TO STDOUT (FORMAT binary)",
        fetched, stage, current, matching);
    s->removed_to_history = fmt::format(
        "INSERT INTO {} ({}_from, _to) SELECT {}c._from, s._close FROM {} s JOIN {} c ON {} "
        "WHERE s._new IS NULL AND c._from < s._close",
        history, separated(stored), separated(stored_current), stage, current, matching);
    s->remove = fmt::format("DELETE FROM {} c USING {} s WHERE {} AND s._new IS NULL", current, stage,
                            matching);
    s->replaced_to_history = fmt::format(
        "INSERT INTO {} ({}_from, _to) SELECT {}c._from, s._close FROM ended c JOIN {} s ON {} "
        "WHERE c._from < s._close",
        history, separated(stored), separated(stored_current), stage, matching);
    constexpr const char* kReplace =
        "UPDATE {} c SET {}_from = s._new FROM {} s WHERE {} AND s._new IS NOT NULL";
    s->replace = fmt::format(kReplace, current, separated(sets), stage, matching);
    s->replace_keeping = fmt::format(kReplace, current, separated(sets_keeping), stage, matching);
  }
  s->copy_history = fmt::format("COPY {} ({}_from, _to) FROM STDIN (FORMAT binary)", history,
                                separated(names));
  s->copy_current = fmt::format("COPY {} ({}_from{}) FROM STDIN (FORMAT binary)", current,
                                separated(names), multiset ? ", _hash" : "");
  s->copy_versions = fmt::format("COPY {} ({}_from, _to, _hash) FROM STDIN (FORMAT binary)",
                                 versions, separated(places));
  s->versions_to_history = fmt::format(
      "INSERT INTO {} ({}_from, _to) SELECT {}v._from, v._to FROM {} v WHERE v._to IS NOT NULL",
      history, separated(names), separated(values), versions);
  s->versions_to_current = fmt::format(
      "INSERT INTO {} ({}_from{}) SELECT {}v._from{} FROM {} v WHERE v._to IS NULL", current,
      separated(names), multiset ? ", _hash" : "", separated(values), multiset ? ", v._hash" : "",
      versions);
  s->truncate_to_history = fmt::format(
      "INSERT INTO {} ({}_from, _to) SELECT {}c._from, $1 FROM {} c WHERE c._from < $1", history,
      separated(stored), separated(stored_current), current);
  // Not TRUNCATE: a reader with an older snapshot would find the table empty.
  s->truncate = fmt::format("DELETE FROM {}", current);
  return statements;
}

}  // namespace tidemark::temporal
