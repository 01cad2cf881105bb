#include "capture/verify_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/identifier.h"

namespace tidemark::capture {

namespace {

// Types of the server's own whose order is the same everywhere, as far as their collation is, and
// whose text is read back as the same value.
constexpr std::array<std::string_view, 24> kOrdered = {
    "bool", "bytea",   "char",     "cidr", "date", "float4",  "float8",    "inet",
    "int2", "int4",    "int8",     "interval", "macaddr", "macaddr8", "name", "numeric",
    "oid",  "pg_lsn",  "bpchar",   "text", "time", "timestamp", "timestamptz", "uuid"};

// How a key column is ordered: type, and what its collation is; NULL where that is not known.
constexpr const char* kOrder = R"sql(
SELECT a.attname, CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname END,
       CASE
         WHEN a.attcollation = 0 THEN ''
         WHEN c.collname IN ('C', 'POSIX', 'ucs_basic') THEN 'C'
         WHEN c.collprovider <> 'd' THEN
           c.collprovider::text || '/'
           || coalesce(c.j->>'colllocale', c.j->>'colliculocale', c.j->>'collcollate', '') || '/'
           || c.collversion
         WHEN coalesce(d.j->>'datlocprovider', 'c') = 'c'
              AND d.j->>'datcollate' IN ('C', 'POSIX') THEN 'C'
         WHEN coalesce(d.j->>'datlocprovider', 'c') = 'c'
              AND d.j->>'datcollate' ~* '^C\.' THEN 'C.'
         ELSE
           (d.j->>'datlocprovider') || '/'
           || coalesce(d.j->>'datlocale', d.j->>'daticulocale', d.j->>'datcollate', '') || '/'
           || (d.j->>'datcollversion')
       END || CASE WHEN a.attcollation = 0 THEN '' ELSE '/' || pg_catalog.getdatabaseencoding() END
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN (SELECT l.*, pg_catalog.to_jsonb(l) AS j FROM pg_catalog.pg_collation l) c
  ON c.oid = a.attcollation
CROSS JOIN (SELECT pg_catalog.to_jsonb(b) AS j FROM pg_catalog.pg_database b
            WHERE b.datname = pg_catalog.current_database()) d
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped
)sql";

struct Order {
  std::string type, collation;
  bool operator==(const Order&) const = default;
};

// By column; those whose order is not known are left out.
std::map<std::string, Order> ReadOrders(const pg::Result& rows) {
  std::map<std::string, Order> orders;
  for (int i = 0; i < rows.rows(); ++i) {
    if (rows.is_null(i, 1) || rows.is_null(i, 2)) continue;
    orders[rows.str(i, 0)] = {rows.str(i, 1), rows.str(i, 2)};
  }
  return orders;
}

}  // namespace

std::optional<KeyCut> KeyCut::Of(VerifyServer& source, VerifyServer& mirror,
                                 const temporal::Dataset& dataset) {
  if (dataset.keying != temporal::Keying::kKey) return std::nullopt;
  const auto answers =
      AskBoth(source, fmt::format(kOrder, dataset.source_oid), mirror,
              fmt::format(kOrder, base::QuoteLiteral(dataset.Current())));
  const auto there = ReadOrders(answers.source);
  const auto here = ReadOrders(answers.mirror);
  std::vector<Column> columns;
  for (const auto& name : dataset.key_columns) {
    const auto one = there.find(name);
    const auto other = here.find(name);
    if (one == there.end() || other == here.end() || one->second != other->second) {
      return std::nullopt;
    }
    // The values of varchar are compared as text.
    const auto& type = one->second.type == "varchar" ? "text" : one->second.type;
    if (std::ranges::find(kOrdered, type) == kOrdered.end()) return std::nullopt;
    columns.push_back({base::QuoteIdentifier(name), "pg_catalog." + base::QuoteIdentifier(type)});
  }
  return KeyCut(std::move(columns));
}

std::string KeyCut::Compared(const char* op, const KeyBound& bound) const {
  std::string names, values;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const char* comma = i == 0 ? "" : ", ";
    names += comma + columns_[i].name;
    values += fmt::format("{}{}::{}", comma, base::QuoteLiteral(bound.at(i)), columns_[i].type);
  }
  return columns_.size() == 1 ? fmt::format("{} {} {}", names, op, values)
                              : fmt::format("({}) {} ({})", names, op, values);
}

std::string KeyCut::Condition(const std::optional<KeyBound>& lower,
                              const std::optional<KeyBound>& upper) const {
  std::string condition;
  if (lower) condition = Compared(">", *lower);
  if (upper) condition += (condition.empty() ? "" : " AND ") + Compared("<=", *upper);
  return condition;
}

std::string KeyCut::NextBound(const std::string& from, int64_t rows) const {
  std::string texts, names;
  for (const auto& column : columns_) {
    texts += fmt::format("{}{}::pg_catalog.text", texts.empty() ? "" : ", ", column.name);
    names += (names.empty() ? "" : ", ") + column.name;
  }
  // By their names the columns, not their texts, would be ambiguous after ORDER BY.
  return fmt::format("SELECT {} FROM (SELECT {} FROM {} ORDER BY {} OFFSET {} LIMIT 1) AS b", texts,
                     names, from, names, rows - 1);
}

namespace {
constexpr const char* kBlocks = R"sql(
SELECT coalesce(pg_catalog.max(pg_catalog.pg_relation_size(h.relid)), 0)
       / pg_catalog.current_setting('block_size')::bigint
FROM (SELECT {oid}::regclass AS relid
      UNION SELECT t.relid FROM pg_catalog.pg_partition_tree({oid}) t) h
)sql";
}  // namespace

int64_t BlocksOf(VerifyServer& source, pg::Oid table) {
  return source.Ask(fmt::format(kBlocks, fmt::arg("oid", table))).int64(0, 0);
}

std::string BlockCondition(int64_t from, int64_t to) {
  return fmt::format("ctid >= '({},0)'::pg_catalog.tid AND ctid < '({},0)'::pg_catalog.tid", from,
                     to);
}

}  // namespace tidemark::capture
