#include "tests/oracle/tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::oracle {

namespace {

constexpr int kLateTables = 8;

Publishing published_as = Publishing::kNamed;

std::vector<TableShape> TablesOf(Publishing publishing) {
  const bool filters = publishing == Publishing::kNamed;
  std::vector<TableShape> tables = {
      {"items", {"id", "n", "note"}, {"id"}},
      {"pairs", {"a", "b", "n"}, {"a", "b"}},
      {"wide_default", {"id", "k", "n", "big", "other"}, {"id"}},
      {"wide_full", {"id", "k", "n", "big", "other"}, {"id"}},
      {"wide_index", {"id", "k", "n", "big", "other"}, {"k"}},
      {"bag", {"a", "b", "f", "big"}, {}},
      {"account_a", {"id", "balance"}, {"id"}},
      {"account_b", {"id", "balance"}, {"id"}},
      {"journal_line", {"id", "line"}, {}},
      {"parent", {"id", "n"}, {"id"}},
      {"child", {"id", "parent", "n"}, {"id"}},
      {"filtered", {"id", "n"}, {"id"}, false, filters},
      {"listed", {"id", "n"}, {"id"}},
      {"computed", {"id", "n"}, {"id"}},
      {"low", {"id", "n"}, {"id"}},
      {"high", {"id", "n"}, {"id"}},
      {"typed",
       {"id", "n", "j", "js", "u", "at", "d", "iv", "raw", "ints", "texts", "m", "p", "r"},
       {"id"}},
      {"bulk", {"id", "n", "pad"}, {"id"}, true},
  };
  if (publishing == Publishing::kAllTables) tables.push_back({"unpublished", {"id", "n"}, {"id"}});
  return tables;
}

}  // namespace

void PublishAs(Publishing publishing) { published_as = publishing; }

Publishing PublishedAs() { return published_as; }

const std::vector<TableShape>& PublishedTables() {
  static const std::vector<TableShape> tables[] = {TablesOf(Publishing::kNamed),
                                                   TablesOf(Publishing::kNamedWhole),
                                                   TablesOf(Publishing::kAllTables)};
  return tables[static_cast<size_t>(published_as)];
}

const std::vector<TableShape>& ChangingTables() {
  static const std::vector<TableShape> tables = [] {
    std::vector<TableShape> all = {
        {"rewritten", {"id", "n", "note"}, {"id"}},
        {"rewritten_bag", {"n", "note"}, {}},
        {"reshaped", {"id", "a", "b", "note"}, {"id"}},
    };
    for (int i = 0; i < kLateTables; ++i) {
      all.push_back({LateTable(i), {"id", "n", "note"}, {"id"}});
    }
    return all;
  }();
  return tables;
}

const TableShape* FindPublished(std::string_view name) {
  for (const auto* tables : {&PublishedTables(), &ChangingTables()}) {
    const auto found =
        std::find_if(tables->begin(), tables->end(), [&](const auto& t) { return t.name == name; });
    if (found != tables->end()) return &*found;
  }
  return nullptr;
}

std::string LateTable(int session) { return fmt::format("late_{}", session % kLateTables); }

std::string CreateLateTableSql(int session) {
  return fmt::format("CREATE TABLE {} (id integer PRIMARY KEY, n integer, note text)",
                     LateTable(session));
}

namespace {

// A default that calls a volatile function makes ALTER TABLE rewrite all rows; one in SQL it would
// look into.
constexpr const char* kChangingSql = R"sql(
CREATE TABLE rewritten (id integer PRIMARY KEY, n integer, note text);
CREATE TABLE rewritten_bag (n integer, note text);
ALTER TABLE rewritten_bag REPLICA IDENTITY FULL;
CREATE TABLE reshaped (id integer PRIMARY KEY, a integer, b integer, note text);
INSERT INTO rewritten SELECT i, i, 'first' FROM generate_series(1, 20) i;
INSERT INTO rewritten_bag SELECT i % 5, 'first' FROM generate_series(1, 20) i;
INSERT INTO reshaped SELECT i, i, -i, 'first' FROM generate_series(1, 20) i;
CREATE FUNCTION seven() RETURNS integer LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN 7; END';
)sql";

}  // namespace

std::string SchemaSql(bool changing) {
  std::string published = "TABLE ";
  for (const auto& table : PublishedTables()) {
    if (table.name == "low" || table.name == "high") continue;
    published += table.name;
    if (table.only_positive_n) published += " WHERE (n > 0)";
    if (published_as == Publishing::kNamed && table.name == "listed") published += " (id, n)";
    published += ", ";
  }
  published += "parted";  // its leaves low and high
  if (changing) published += ", rewritten, rewritten_bag, reshaped";
  if (published_as == Publishing::kAllTables) published = "ALL TABLES";
  return std::string(changing ? kChangingSql : "") + fmt::format(R"sql(
CREATE TABLE items (id integer PRIMARY KEY, n integer, note text);
CREATE TABLE pairs (a text, b text, n numeric, PRIMARY KEY (a, b));
CREATE TABLE wide_default (id integer PRIMARY KEY, k integer NOT NULL, n integer, big text,
                           other text);
CREATE TABLE wide_full (LIKE wide_default INCLUDING ALL);
CREATE TABLE wide_index (LIKE wide_default INCLUDING ALL);
CREATE UNIQUE INDEX wide_index_k ON wide_index (k);
ALTER TABLE wide_default ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL;
ALTER TABLE wide_full ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL,
  REPLICA IDENTITY FULL;
ALTER TABLE wide_index ALTER big SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL,
  REPLICA IDENTITY USING INDEX wide_index_k;
CREATE TABLE bag (a integer, b text, f double precision, big text);
ALTER TABLE bag ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;
CREATE TABLE account_a (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE account_b (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE journal_line (id bigint, line text);
CREATE TABLE parent (id integer PRIMARY KEY, n integer);
CREATE TABLE child (id integer PRIMARY KEY, parent integer REFERENCES parent ON DELETE CASCADE,
                    n integer);
CREATE TABLE bulk (id integer PRIMARY KEY, n integer, pad text);
CREATE TABLE filtered (id integer PRIMARY KEY, n integer);
ALTER TABLE filtered REPLICA IDENTITY FULL;
CREATE TABLE listed (secret text, id integer PRIMARY KEY, n integer);
CREATE TABLE computed (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (n * 2) STORED,
                       n integer);
CREATE TABLE parted (id integer PRIMARY KEY, n integer) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE high PARTITION OF parted FOR VALUES FROM (20) TO (MAXVALUE);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (m mood, t text);
CREATE TABLE typed (id integer PRIMARY KEY, n numeric, j jsonb, js json, u uuid, at timestamptz,
                    d date, iv interval, raw bytea, ints integer[], texts text[], m mood, p pair,
                    r int4range);
CREATE TABLE unpublished (id integer PRIMARY KEY, n integer);
INSERT INTO account_a SELECT i, 1000 FROM generate_series(1, 20) i;
INSERT INTO account_b SELECT i, 1000 FROM generate_series(1, 20) i;
INSERT INTO items SELECT i, 0, 'first' FROM generate_series(1, 40) i;
CREATE PUBLICATION {} FOR {};
)sql",
                     kPublication, published);
}

bool MetChangeOfColumns(const base::Error& error) {
  constexpr base::SqlState kInvalidFunctionDefinition("42P13");
  return error.state() == kInvalidFunctionDefinition || error.state() == base::kUndefinedColumn;
}

std::string RowTextSql(const TableShape& table, std::string_view alias) {
  std::string text = "concat(";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    text +=
        fmt::format("{0}coalesce(octet_length({1}.{2}::text) || ':' || {1}.{2}::text, '-'), ';'",
                    i == 0 ? "" : ", ", alias, table.columns[i]);
  }
  return text + ")";
}

std::string RowHashSql(const TableShape& table, std::string_view alias) {
  return fmt::format("('x' || substr(md5({}), 1, 10))::bit(40)::bigint", RowTextSql(table, alias));
}

std::string DigestSql(const TableShape& table, std::string_view from) {
  return fmt::format("SELECT '{}' AS name, count(*) AS rows, coalesce(sum({}), 0) AS sum FROM {} r",
                     table.name, RowHashSql(table, "r"), from);
}

}  // namespace tidemark::oracle
