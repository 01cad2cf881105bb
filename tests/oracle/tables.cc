#include "tests/oracle/tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::oracle {

namespace {

bool filters = true;

}  // namespace

void LeaveOutFilters() { filters = false; }

const std::vector<TableShape>& PublishedTables() {
  static const std::vector<TableShape> tables = {
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
  return tables;
}

const TableShape* FindPublished(std::string_view name) {
  const auto& tables = PublishedTables();
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

std::string SchemaSql() {
  std::string published;
  for (const auto& table : PublishedTables()) {
    if (table.name == "low" || table.name == "high") continue;
    published += table.name;
    if (table.only_positive_n) published += " WHERE (n > 0)";
    if (filters && table.name == "listed") published += " (id, n)";
    published += ", ";
  }
  published += "parted";  // its leaves low and high
  return fmt::format(R"sql(
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
CREATE PUBLICATION {} FOR TABLE {};
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
