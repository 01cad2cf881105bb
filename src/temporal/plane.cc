#include "temporal/plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "temporal/history.h"
#include "temporal/index_definition.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;
using base::QuoteLiteral;

namespace {

std::string QuotedList(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ", ";
    list += QuoteIdentifier(name);
  }
  return list;
}

// `"a" integer NOT NULL, …`. A collation that the store lacks is left to the type's default.
std::string ColumnDefinitions(pg::Connection& store, const Dataset& dataset,
                              const pg::Relation& upstream, bool not_null) {
  std::string definitions;
  for (const auto& column : dataset.columns) {
    const pg::Column* source = upstream.Find(column.name);
    if (!definitions.empty()) definitions += ", ";
    definitions += QuoteIdentifier(column.name) + " " + column.type_sql;
    if (source != nullptr && !source->collation.empty() &&
        !store.Value("SELECT coalesce(to_regcollation($1)::text, '')", {source->collation})
             .empty()) {
      definitions += " COLLATE " + source->collation;
    }
    if (not_null && source != nullptr && source->not_null) definitions += " NOT NULL";
  }
  return definitions;
}

// Runs DDL that may fail without harm to the surrounding transaction; says whether it worked.
bool TryDefine(pg::Connection& store, const std::string& sql, const std::string& what) {
  store.Execute("SAVEPOINT tidemark_define");
  try {
    store.Execute(sql);
    store.Execute("RELEASE SAVEPOINT tidemark_define");
    return true;
  } catch (const Error& error) {
    if (error.IsConnectionLoss()) throw;
    store.Execute("ROLLBACK TO SAVEPOINT tidemark_define");
    spdlog::warn("{} is left out: {}", what, error.message());
    return false;
  }
}

}  // namespace

void CreateCurrent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream) {
  const std::string columns = ColumnDefinitions(store, dataset, upstream, true);
  store.Execute(fmt::format(
      R"sql(
CREATE TABLE {} ({}{}_from bigint NOT NULL{})
WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.1)
)sql",
      dataset.Current(), columns, columns.empty() ? "" : ", ",
      dataset.keying == Keying::kMultiset ? ", _hash uuid NOT NULL" : ""));
}

std::vector<std::string> BuildIndexes(pg::Connection& store, const Dataset& dataset,
                                      const pg::Relation& upstream) {
  std::vector<std::string> left_out;
  const std::string current = dataset.Current();
  pg::Transaction tx(store);
  const pg::Index* primary = upstream.PrimaryKey();
  const bool by_primary = primary != nullptr && dataset.keying == Keying::kKey &&
                          primary->columns == dataset.key_columns;
  if (dataset.keying == Keying::kKey) {
    store.Execute(by_primary
                      ? fmt::format("ALTER TABLE {} ADD PRIMARY KEY ({})", current,
                                    QuotedList(dataset.key_columns))
                      : fmt::format("CREATE UNIQUE INDEX d{}_key ON {} ({})", dataset.id, current,
                                    QuotedList(dataset.key_columns)));
  } else if (dataset.keying == Keying::kMultiset) {
    store.Execute(fmt::format("CREATE INDEX d{}_hash ON {} (_hash)", dataset.id, current));
  }
  int number = 0;
  for (const auto& index : upstream.indexes) {
    ++number;
    if ((index.primary && by_primary) || !index.valid) continue;
    if (dataset.keying == Keying::kKey && !by_primary && index.replica_identity) continue;
    // Not unique: a batch applies final states, in which two rows may have swapped a value.
    const auto sql = IndexDefinitionFor(index.definition, fmt::format("d{}_i{}", dataset.id, number),
                                        current, /*unique=*/false);
    if (!TryDefine(store, sql, fmt::format("index {}", index.name))) left_out.push_back(index.name);
  }
  std::move(tx).Commit();
  store.Execute("ANALYZE " + current);
  return left_out;
}

namespace {

void CreateParent(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream) {
  const std::string parent = dataset.name.Quoted();
  store.Execute(
      fmt::format("CREATE SCHEMA IF NOT EXISTS {}", QuoteIdentifier(dataset.name.schema)));
  store.Execute(fmt::format("CREATE TABLE {} ({})", parent,
                            ColumnDefinitions(store, dataset, upstream, true)));
  for (const auto& index : upstream.indexes) {
    if (!index.valid) continue;
    const auto what = fmt::format("index {}", index.name);
    if (index.primary || (!index.constraint.empty() && index.unique)) {
      TryDefine(store,
                fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {} ({})", parent,
                            QuoteIdentifier(index.name),
                            index.primary ? "PRIMARY KEY" : "UNIQUE", QuotedList(index.columns)),
                what);
    } else if (index.constraint.empty()) {
      TryDefine(store,
                IndexDefinitionFor(index.definition, index.name, parent, index.unique), what);
    }
  }
  if (upstream.comment) {
    store.Execute(
        fmt::format("COMMENT ON TABLE {} IS {}", parent, QuoteLiteral(*upstream.comment)));
  }
  for (const auto& column : upstream.columns) {
    const bool kept = std::any_of(dataset.columns.begin(), dataset.columns.end(),
                                  [&](const auto& one) { return one.name == column.name; });
    if (!column.comment || !kept) continue;
    store.Execute(fmt::format("COMMENT ON COLUMN {}.{} IS {}", parent,
                              QuoteIdentifier(column.name), QuoteLiteral(*column.comment)));
  }
  store.Execute(fmt::format("ALTER TABLE {} INHERIT {}", dataset.Current(), parent));
}

void CreateHistory(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream) {
  const std::string history = dataset.History();
  const std::string columns = ColumnDefinitions(store, dataset, upstream, false);
  store.Execute(fmt::format(
      "CREATE TABLE {} ({}{}_from bigint NOT NULL, _to bigint NOT NULL) PARTITION BY RANGE (_to)",
      history, columns, columns.empty() ? "" : ", "));
  CreateFirstPartition(store, dataset);
  if (dataset.keying == Keying::kKey) {
    store.Execute(fmt::format("CREATE INDEX d{}_key_to ON {} ({}, _to)", dataset.id, history,
                              QuotedList(dataset.key_columns)));
  }
}

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
      fmt::arg("names", names), fmt::arg("period", QuotedList(period)),
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

void CreateAsOf(pg::Connection& store, const Dataset& dataset, const Names& n) {
  // Inlined by the planner: LANGUAGE sql, STABLE, not STRICT, no SET, one SELECT. A tx beyond the
  // snapshot must be noticed, since the plan may be younger than the snapshot; `check` is evaluated
  // once, and only beside the current rows: no row of history can have been closed by such a tx.
  constexpr const char* kAsOfTx = R"sql(
CREATE OR REPLACE FUNCTION tidemark.{function}({type}, bigint) RETURNS SETOF {type}
LANGUAGE sql STABLE PARALLEL SAFE AS $tidemark$
  SELECT {columns} FROM {current} WHERE _from <= {x}{check}
  UNION ALL
  SELECT {columns} FROM {history} WHERE _from <= {x} AND _to > {x}
$tidemark$
)sql";
  const auto define = [&](std::string_view function, const std::string& x,
                          const std::string& check) {
    store.Execute(fmt::format(kAsOfTx, fmt::arg("function", function),
                              fmt::arg("type", n.row_type),
                              fmt::arg("columns", ColumnsAsOf(dataset, x)),
                              fmt::arg("current", dataset.Current()),
                              fmt::arg("history", dataset.History()), fmt::arg("x", x),
                              fmt::arg("check", check)));
  };
  // as_of_tx_once is not for a tx that depends on other rows: where history has one partition,
  // PostgreSQL 15 keeps the value that its sub-select had for the first of them.
  const std::string visible = fmt::format("tidemark.visible_tx({}, $2)", n.relation);
  define("as_of_tx", "$2", " AND " + visible + " IS NOT NULL");
  define("as_of_tx_once", "(SELECT " + visible + ")", "");

  constexpr const char* kAsOf = R"sql(
CREATE OR REPLACE FUNCTION tidemark.{function}({type}, {instant}) RETURNS SETOF {type}
LANGUAGE sql STABLE PARALLEL SAFE AS $tidemark$
  SELECT * FROM tidemark.{through}(NULL::{type}, tidemark.{tx_at}({relation}, $2))
$tidemark$
)sql";
  const auto wrap = [&](std::string_view function, std::string_view instant,
                        std::string_view through, std::string_view tx_at) {
    store.Execute(fmt::format(kAsOf, fmt::arg("function", function), fmt::arg("type", n.row_type),
                              fmt::arg("instant", instant), fmt::arg("through", through),
                              fmt::arg("tx_at", tx_at), fmt::arg("relation", n.relation)));
  };
  wrap("as_of", "timestamptz", "as_of_tx", "tx_at");
  wrap("as_of_once", "timestamptz", "as_of_tx_once", "tx_at");
  wrap("as_of_source", "timestamptz", "as_of_tx", "tx_at_source");
  wrap("as_of_position", "pg_lsn", "as_of_tx", "tx_at_position");
}

void CreateVersions(pg::Connection& store, const Names& n, const std::vector<std::string>& period) {
  // versions_until: as the versions were known when `cap` was the newest tx.
  store.Execute(fmt::format(
      R"sql(
CREATE FUNCTION tidemark.versions({type}, axis text, form text, a timestamptz, b timestamptz)
RETURNS SETOF {view} LANGUAGE sql STABLE AS $tidemark$
  SELECT v.* FROM tidemark.version_window({relation}, $2, $3, $4, $5) w, {view} v
  WHERE v.{tx_from} BETWEEN w.from_least AND w.from_most
    AND coalesce(v.{tx_to}, 9223372036854775807) BETWEEN w.to_least AND w.to_most
    AND (NOT w.skip_empty OR v.{system_from} < v.{system_to})
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
    AND (NOT w.skip_empty OR v.{system_from} < v.{system_to})
$tidemark$
)sql",
      fmt::arg("type", n.row_type), fmt::arg("view", n.view), fmt::arg("relation", n.relation),
      fmt::arg("columns", n.version_columns.empty() ? "" : n.version_columns + ", "),
      fmt::arg("system_from", QuoteIdentifier(period[0])),
      fmt::arg("system_to", QuoteIdentifier(period[1])),
      fmt::arg("source_from", QuoteIdentifier(period[2])),
      fmt::arg("source_to", QuoteIdentifier(period[3])),
      fmt::arg("tx_from", QuoteIdentifier(period[4])),
      fmt::arg("tx_to", QuoteIdentifier(period[5]))));
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

}  // namespace

namespace {

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

// The columns as the parent has them, whose row type the functions return: a column that had to begin
// anew stands last there, and elsewhere in the images.
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

}  // namespace

void DefineReading(pg::Connection& store, const Dataset& as_kept) {
  const Dataset dataset = InParentsOrder(store, as_kept);
  const std::string parent = dataset.name.Quoted();
  const std::string view = base::QualifiedName{dataset.ViewSchema(), dataset.name.name}.Quoted();
  DropReading(store, dataset);
  const auto period = PeriodColumns(dataset);
  CreateView(store, dataset, period);
  const Names names{parent, dataset.ColumnList(), VersionColumns(dataset),
                    QuoteLiteral(parent) + "::regclass", view};
  CreateAsOf(store, dataset, names);
  CreateVersions(store, names, period);
  CreateDiff(store, dataset, names);
  store.Execute(fmt::format("GRANT SELECT ON {} TO tidemark_reader", view));
}

void GrantReading(pg::Connection& store, const Dataset& dataset) {
  const std::string parent = dataset.name.Quoted();
  // REFERENCES, because information_schema shows a table's keys to no role that may only read it.
  store.Execute(fmt::format(
      R"sql(
GRANT USAGE ON SCHEMA {}, {} TO tidemark_reader;
GRANT SELECT ON {}, {}, {} TO tidemark_reader;
GRANT REFERENCES ON {} TO tidemark_reader
)sql",
      QuoteIdentifier(dataset.name.schema), QuoteIdentifier(dataset.ViewSchema()), parent,
      dataset.Current(), dataset.History(), parent));
}

void Attach(pg::Connection& store, const Dataset& dataset, const pg::Relation& upstream,
            int64_t tx_first) {
  CreateParent(store, dataset, upstream);
  CreateHistory(store, dataset, upstream);
  Dataset first = dataset;
  first.tx_first = tx_first;
  DefineReading(store, first);
  GrantReading(store, dataset);
  const std::string parent = dataset.name.Quoted();
  store.Execute(
      "UPDATE tidemark.dataset SET tx_first = $2, relid = $3::regclass::oid WHERE id = $1",
      {std::to_string(dataset.id), std::to_string(tx_first), parent});
}

void LinkForeignKeys(pg::Connection& store, const std::vector<pg::Relation>& upstream) {
  for (const auto& relation : upstream) {
    for (const auto& key : relation.foreign_keys) {
      const bool target_here =
          std::any_of(upstream.begin(), upstream.end(),
                      [&](const auto& other) { return other.name == key.target; });
      if (!target_here) continue;
      TryDefine(store,
                fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", relation.name.Quoted(),
                            QuoteIdentifier(key.name), key.definition),
                fmt::format("foreign key {}", key.name));
    }
  }
}

void DropUnattached(pg::Connection& store, int dataset_id) {
  store.Execute(fmt::format("DROP TABLE IF EXISTS tidemark_current.d{}", dataset_id));
}

}  // namespace tidemark::temporal
