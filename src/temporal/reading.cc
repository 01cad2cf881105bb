#include "temporal/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/identifier.h"
#include "temporal/heir_rows.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;
using base::QuoteIdentifiers;
using base::QuoteLiteral;

namespace {

// What the view calls the retired columns: their last names, with leading underscores until unique.
std::vector<std::string> RetiredShown(const Dataset& dataset) {
  std::set<std::string> taken;
  for (const auto& column : dataset.columns) taken.insert(column.name);
  std::vector<std::string> names;
  for (const auto& column : dataset.retired) {
    std::string name = column.name;
    while (taken.contains(name)) name.insert(name.begin(), '_');
    taken.insert(name);
    names.push_back(name);
  }
  return names;
}

// The period columns' names, with leading underscores until none is a column of the table.
std::vector<std::string> PeriodColumns(const Dataset& dataset) {
  std::set<std::string> taken;
  for (const auto& column : dataset.columns) taken.insert(column.name);
  for (const auto& name : RetiredShown(dataset)) taken.insert(name);
  std::vector<std::string> names = {"system_from", "system_to", "source_from",
                                    "source_to",   "tx_from",   "tx_to"};
  for (auto& name : names) {
    while (taken.contains(name)) name.insert(name.begin(), '_');
    taken.insert(name);
  }
  return names;
}

std::string SystemTimeOf(int journal, std::string_view tx) {
  return fmt::format(
      "(SELECT b.system_time FROM tidemark.basis_journal b WHERE b.journal = {} AND b.tx_last >= "
      "{} ORDER BY b.tx_last, b.system_time LIMIT 1)",
      journal, tx);
}

std::string SourceTimeOf(int journal, std::string_view tx) {
  return fmt::format(
      "(SELECT t.source_time FROM tidemark.tx t WHERE t.journal = {} AND t.tx = {})", journal, tx);
}

void CreateView(pg::Connection& store, const Dataset& dataset,
                const std::vector<std::string>& period) {
  std::string columns = dataset.StoredColumnList("v.");
  if (!columns.empty()) columns += ", ";
  std::string names = dataset.ColumnList();
  if (!names.empty()) names += ", ";
  for (const auto& name : RetiredShown(dataset)) names += QuoteIdentifier(name) + ", ";
  const int j = dataset.journal;
  // Rows of a table that came later were copied before its first tx was known.
  const std::string from =
      dataset.tx_first > 1 ? fmt::format("greatest(v._from, {})", dataset.tx_first) : "v._from";
  const std::string schema = QuoteIdentifier(dataset.ViewSchema());
  store.Execute(fmt::format(
      "CREATE SCHEMA IF NOT EXISTS {}; COMMENT ON SCHEMA {} IS {}", schema, schema,
      QuoteLiteral(fmt::format("Tidemark: every row version of the tables of schema \"{}\"",
                               dataset.name.schema))));
  store.Execute(fmt::format(
      R"sql(
CREATE VIEW {view} ({names}{period}) AS
SELECT {columns}{system_from}, 'infinity'::timestamptz, {source_from}, 'infinity'::timestamptz,
       {from}, NULL::bigint
FROM {current} v
UNION ALL
SELECT {columns}{system_from}, {system_to}, {source_from}, {source_to}, {from}, v._to
FROM {history} v
)sql",
      fmt::arg("view", base::QualifiedName{dataset.ViewSchema(), dataset.name.name}.Quoted()),
      fmt::arg("names", names), fmt::arg("period", QuoteIdentifiers(period)),
      fmt::arg("columns", columns), fmt::arg("system_from", SystemTimeOf(j, from)),
      fmt::arg("system_to", SystemTimeOf(j, "v._to")),
      fmt::arg("source_from", SourceTimeOf(j, from)), fmt::arg("from", from),
      fmt::arg("source_to", SourceTimeOf(j, "v._to")), fmt::arg("current", dataset.Current()),
      fmt::arg("history", dataset.History())));
}

// What the time-travel functions of one dataset have in common as format arguments; the columns
// both bare and of `v`.
struct Names {
  std::string row_type, columns, version_columns, relation, view;
};

// The columns as of tx `x`.
std::string ColumnsAsOf(const Dataset& dataset, const std::string& x) {
  std::string list;
  for (const auto& column : dataset.columns) {
    const std::string name = QuoteIdentifier(column.name);
    list += list.empty() ? "" : ", ";
    list += column.null_before == 0
                ? name
                : fmt::format("CASE WHEN {} >= {} THEN {} END", x, column.null_before, name);
  }
  return list;
}

// The rows as of `x`. A tx beyond the snapshot must be noticed, since the plan may be younger than
// the snapshot: `visible` is evaluated once, before any row.
std::string RowsAsOf(const Dataset& dataset, const std::string& x, const std::string& visible) {
  return fmt::format(
      "SELECT {columns} FROM {versions} WHERE _from <= {x} AND _to > {x} AND {visible} IS NOT NULL",
      fmt::arg("columns", ColumnsAsOf(dataset, x)), fmt::arg("versions", dataset.Versions()),
      fmt::arg("x", x), fmt::arg("visible", visible));
}

// The functions that read the dataset at an instant, with the rows of its heirs; `only` goes before
// the names of those that leave them out.
void CreateAsOf(pg::Connection& store, const Dataset& dataset, const Names& n, const HeirRows* heirs,
                std::string_view only) {
  // Inlined by the planner: LANGUAGE sql, STABLE, not STRICT, no SET, one SELECT.
  const auto define = [&](std::string_view function, const std::string& x,
                          const std::string& rows) {
    store.Execute(fmt::format(
        R"sql(
CREATE OR REPLACE FUNCTION tidemark.{only}{function}({type}, bigint) RETURNS SETOF {type}
LANGUAGE sql STABLE PARALLEL SAFE AS $tidemark$
  {rows}{heirs}
$tidemark$
)sql",
        fmt::arg("only", only), fmt::arg("function", function), fmt::arg("type", n.row_type),
        fmt::arg("rows", rows), fmt::arg("heirs", heirs == nullptr ? "" : heirs->AsOf(x))));
  };
  const std::string visible = fmt::format("tidemark.visible_tx({}, $2)", n.relation);
  define("as_of_tx", "$2", RowsAsOf(dataset, "$2", visible));
  // Not for a tx that depends on other rows: where history has one partition, PostgreSQL 15 keeps
  // the value that its sub-select had for the first of them.
  const std::string once = "(SELECT " + visible + ")";
  define("as_of_tx_once", once, RowsAsOf(dataset, once, once));

  constexpr const char* kAsOf = R"sql(
CREATE OR REPLACE FUNCTION tidemark.{only}{function}({type}, {instant}) RETURNS SETOF {type}
LANGUAGE sql STABLE PARALLEL SAFE AS $tidemark$
  SELECT * FROM tidemark.{only}{through}(NULL::{type}, tidemark.{tx_at}({relation}, $2))
$tidemark$
)sql";
  const auto wrap = [&](std::string_view function, std::string_view instant,
                        std::string_view through, std::string_view tx_at) {
    store.Execute(fmt::format(kAsOf, fmt::arg("only", only), fmt::arg("function", function),
                              fmt::arg("type", n.row_type), fmt::arg("instant", instant),
                              fmt::arg("through", through),
                              fmt::arg("tx_at", tx_at), fmt::arg("relation", n.relation)));
  };
  wrap("as_of", "timestamptz", "as_of_tx", "tx_at");
  wrap("as_of_once", "timestamptz", "as_of_tx_once", "tx_at");
  wrap("as_of_source", "timestamptz", "as_of_tx", "tx_at_source");
  wrap("as_of_position", "pg_lsn", "as_of_tx", "tx_at_position");
}

// With the rows of the dataset's heirs. Where there are or were any, the functions for ONLY, too.
void DefineAsOf(pg::Connection& store, const Dataset& dataset, const Names& n) {
  const HeirRows heirs(store, dataset);
  CreateAsOf(store, dataset, n, &heirs, "");
  if (heirs.empty()) return;
  CreateAsOf(store, dataset, n, nullptr, "only_");
  store.Execute(fmt::format(
      R"sql(
CREATE OR REPLACE FUNCTION tidemark.only_rows({type}) RETURNS SETOF {type}
LANGUAGE sql STABLE PARALLEL SAFE AS $tidemark$
  SELECT {columns} FROM {current}
$tidemark$
)sql",
      fmt::arg("type", n.row_type), fmt::arg("columns", n.columns),
      fmt::arg("current", dataset.Current())));
}

// That a version did not begin and end inside one basis. Few are short enough to be looked up.
std::string Lasted(int journal, const std::string& tx_from, const std::string& tx_to) {
  return fmt::format(
      "(NOT w.skip_empty OR coalesce(v.{to} - v.{from} >= (SELECT j.tx_span FROM tidemark.journal j "
      "WHERE j.id = {journal}), true) OR EXISTS (SELECT FROM tidemark.basis_journal b WHERE b.journal = "
      "{journal} AND b.tx_last >= v.{from} AND b.tx_last < v.{to}))",
      fmt::arg("journal", journal), fmt::arg("from", tx_from), fmt::arg("to", tx_to));
}

void CreateVersions(pg::Connection& store, const Dataset& dataset, const Names& n,
                    const std::vector<std::string>& period) {
  // versions_until: as the versions were known when `cap` was the newest tx.
  store.Execute(fmt::format(
      R"sql(
CREATE FUNCTION tidemark.versions({type}, axis text, form text, a timestamptz, b timestamptz)
RETURNS SETOF {view} LANGUAGE sql STABLE AS $tidemark$
  SELECT v.* FROM tidemark.version_window({relation}, $2, $3, $4, $5) w, {view} v
  WHERE v.{tx_from} BETWEEN w.from_least AND w.from_most
    AND coalesce(v.{tx_to}, 9223372036854775807) BETWEEN w.to_least AND w.to_most
    AND {lasted}
$tidemark$;

CREATE FUNCTION tidemark.versions_until({type}, axis text, form text, a timestamptz, b timestamptz,
                                        cap bigint)
RETURNS SETOF {view} LANGUAGE sql STABLE AS $tidemark$
  SELECT {columns}v.{system_from}, CASE WHEN v.{tx_to} <= $6 THEN v.{system_to} ELSE 'infinity' END,
         v.{source_from}, CASE WHEN v.{tx_to} <= $6 THEN v.{source_to} ELSE 'infinity' END,
         v.{tx_from}, CASE WHEN v.{tx_to} <= $6 THEN v.{tx_to} END
  FROM tidemark.version_window({relation}, $2, $3, $4, $5) w, {view} v
  WHERE v.{tx_from} BETWEEN w.from_least AND least(w.from_most, $6)
    AND CASE WHEN v.{tx_to} <= $6 THEN v.{tx_to} ELSE 9223372036854775807 END
        BETWEEN w.to_least AND w.to_most
    AND {lasted}
$tidemark$
)sql",
      fmt::arg("type", n.row_type), fmt::arg("view", n.view), fmt::arg("relation", n.relation),
      fmt::arg("columns", n.version_columns.empty() ? "" : n.version_columns + ", "),
      fmt::arg("system_from", QuoteIdentifier(period[0])),
      fmt::arg("system_to", QuoteIdentifier(period[1])),
      fmt::arg("source_from", QuoteIdentifier(period[2])),
      fmt::arg("source_to", QuoteIdentifier(period[3])),
      fmt::arg("tx_from", QuoteIdentifier(period[4])),
      fmt::arg("tx_to", QuoteIdentifier(period[5])),
      fmt::arg("lasted", Lasted(dataset.journal, QuoteIdentifier(period[4]),
                                QuoteIdentifier(period[5])))));
}

void CreateDiff(pg::Connection& store, const Dataset& dataset, const Names& n) {
  // Rows that ended in (a, b] and were alive at a; rows alive at b that began in (a, b].
  std::string join = "false";
  if (dataset.keying == Keying::kKey) {
    join.clear();
    for (const auto& key : dataset.key_columns) {
      if (!join.empty()) join += " AND ";
      join += fmt::format("(o.r).{0} = (w.r).{0}", QuoteIdentifier(key));
    }
  }
  store.Execute(fmt::format(
      R"sql(
CREATE OR REPLACE FUNCTION tidemark.diff_tx({type}, a bigint, b bigint)
RETURNS TABLE (op text, old_row {type}, new_row {type})
LANGUAGE sql STABLE AS $tidemark$
  WITH o AS (
    SELECT ROW({columns})::{type} AS r FROM {history} WHERE _from <= $2 AND _to > $2 AND _to <= $3
  ), w AS (
    SELECT ROW({columns})::{type} AS r FROM {current} WHERE _from > $2 AND _from <= $3
    UNION ALL
    SELECT ROW({columns})::{type} FROM {history} WHERE _from > $2 AND _from <= $3 AND _to > $3
  ), keyed AS (SELECT o.r AS o, w.r AS w FROM o FULL JOIN w ON {join})
  SELECT CASE WHEN o IS NOT DISTINCT FROM NULL THEN 'insert'
              WHEN w IS NOT DISTINCT FROM NULL THEN 'delete' ELSE 'update' END, o, w
  FROM keyed
$tidemark$
)sql",
      fmt::arg("type", n.row_type), fmt::arg("columns", n.columns),
      fmt::arg("history", dataset.History()), fmt::arg("current", dataset.Current()), fmt::arg("join", join)));
  const auto wrap = [&](std::string_view function, std::string_view instant,
                        std::string_view tx_at) {
    store.Execute(fmt::format(
        R"sql(
CREATE OR REPLACE FUNCTION tidemark.{function}({type}, a {instant}, b {instant})
RETURNS TABLE (op text, old_row {type}, new_row {type})
LANGUAGE sql STABLE AS $tidemark$
  SELECT * FROM tidemark.diff_tx(NULL::{type},
                                 tidemark.visible_tx({relation}, tidemark.{tx_at}({relation}, $2)),
                                 tidemark.visible_tx({relation}, tidemark.{tx_at}({relation}, $3)))
$tidemark$
)sql",
        fmt::arg("function", function), fmt::arg("type", n.row_type),
        fmt::arg("instant", instant), fmt::arg("tx_at", tx_at),
        fmt::arg("relation", n.relation)));
  };
  wrap("diff", "timestamptz", "tx_at");
  wrap("diff_position", "pg_lsn", "tx_at_position");
}

// A retired column of `v` goes by its name in the view.
std::string VersionColumns(const Dataset& dataset) {
  std::string list = dataset.ColumnList("v.");
  for (const auto& name : RetiredShown(dataset)) {
    list += (list.empty() ? "v." : ", v.") + QuoteIdentifier(name);
  }
  return list;
}

}  // namespace

// The other functions stay: whoever is about to call one has looked it up by its OID.
void DropReading(pg::Connection& store, const Dataset& dataset) {
  const auto view = base::QualifiedName{dataset.ViewSchema(), dataset.name.name}.Quoted();
  const auto functions = store.Execute(
      R"sql(
SELECT p.oid::regprocedure
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_class c ON c.reltype = p.prorettype
WHERE p.pronamespace = 'tidemark'::regnamespace AND c.oid = to_regclass($1)
)sql",
      {view});
  for (int i = 0; i < functions.rows(); ++i) {
    store.Execute("DROP FUNCTION " + functions.str(i, 0));
  }
  store.Execute("DROP VIEW IF EXISTS " + view);
}

namespace {

// The columns as the parent has them, whose row type the functions return: a column that had to
// begin anew stands last there, and elsewhere in the images.
Dataset InParentsOrder(pg::Connection& store, const Dataset& dataset) {
  const auto rows = store.Execute(
      "SELECT a.attname FROM pg_catalog.pg_attribute a "
      "WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
      {dataset.name.Quoted()});
  Dataset ordered = dataset;
  ordered.columns.clear();
  for (int i = 0; i < rows.rows(); ++i) {
    const auto column = std::ranges::find(dataset.columns, rows.str(i, 0), &DatasetColumn::name);
    if (column != dataset.columns.end()) ordered.columns.push_back(*column);
  }
  return ordered;
}

Names NamesOf(const Dataset& dataset) {
  const std::string parent = dataset.name.Quoted();
  return {parent, dataset.ColumnList(), VersionColumns(dataset),
          QuoteLiteral(parent) + "::regclass",
          base::QualifiedName{dataset.ViewSchema(), dataset.name.name}.Quoted()};
}

}  // namespace

void DefineReading(pg::Connection& store, const Dataset& as_kept) {
  const Dataset dataset = InParentsOrder(store, as_kept);
  DropReading(store, dataset);
  const auto period = PeriodColumns(dataset);
  CreateView(store, dataset, period);
  const Names names = NamesOf(dataset);
  DefineAsOf(store, dataset, names);
  CreateVersions(store, dataset, names, period);
  CreateDiff(store, dataset, names);
  store.Execute(fmt::format("GRANT SELECT ON {} TO tidemark_reader", names.view));
}

void DefineReadingOfParents(pg::Connection& store, int journal, std::set<int> parents) {
  for (const int parent : std::set<int>(parents)) {
    const auto further = store.Execute("SELECT tidemark.ancestors_of($1)", {std::to_string(parent)});
    for (int i = 0; i < further.rows(); ++i) {
      parents.insert(static_cast<int>(further.int64(i, 0)));
    }
  }
  if (parents.empty()) return;
  for (const auto& kept : LoadDatasets(store, journal)) {
    if (!parents.contains(kept.id)) continue;
    const Dataset dataset = InParentsOrder(store, kept);
    DefineAsOf(store, dataset, NamesOf(dataset));
  }
}

void DefineReadingThroughParents(pg::Connection& store, const Dataset& heir) {
  const auto parents = store.Execute("SELECT tidemark.ancestors_of($1)", {std::to_string(heir.id)});
  std::set<int> all;
  for (int i = 0; i < parents.rows(); ++i) all.insert(static_cast<int>(parents.int64(i, 0)));
  if (!all.empty()) DefineReadingOfParents(store, heir.journal, std::move(all));
}

void GrantReading(pg::Connection& store, const Dataset& dataset) {
  const std::string parent = dataset.name.Quoted();
  // REFERENCES, because information_schema shows a table's keys to no role that may only read it.
  store.Execute(fmt::format(
      R"sql(
GRANT USAGE ON SCHEMA {}, {} TO tidemark_reader;
GRANT SELECT ON {}, {}, {}, {} TO tidemark_reader;
GRANT REFERENCES ON {} TO tidemark_reader
)sql",
      QuoteIdentifier(dataset.name.schema), QuoteIdentifier(dataset.ViewSchema()), parent,
      dataset.Current(), dataset.History(), dataset.Versions(), parent));
}

}  // namespace tidemark::temporal
