#include "capture/verify_query.h"

#include <fmt/format.h>

#include <utility>

#include "base/identifier.h"

namespace tidemark::capture {

namespace {

// ROW(…)::text is the one text of a row that keeps NULL and '' apart and needs no operator.
std::string RowText(const std::vector<std::string>& columns) {
  return fmt::format("ROW({})::text", fmt::join(columns, ", "));
}

std::vector<std::string> Quoted(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) quoted.push_back(base::QuoteIdentifier(name));
  return quoted;
}

std::string ArrayOf(std::span<const int64_t> values) {
  return fmt::format("'{{{}}}'::bigint[]", fmt::join(values, ","));
}

}  // namespace

VerifyQuery::VerifyQuery(const temporal::Dataset& dataset, TextHash hash, std::string from)
    : hash_(hash), from_(std::move(from)) {
  for (const auto& column : dataset.columns) columns_.push_back(base::QuoteIdentifier(column.name));
  key_ = RowText(dataset.key_columns.empty() ? columns_ : Quoted(dataset.key_columns));
  key_hash_ = HashOf(key_);
  row_hash_ = HashOf(RowText(columns_));
}

std::string VerifyQuery::HashOf(const std::string& row) const {
  if (hash_ == TextHash::kNative) return fmt::format("pg_catalog.hashtextextended({}, 0)", row);
  return fmt::format(
      "('x' || pg_catalog.left(pg_catalog.encode(pg_catalog.sha256("
      "pg_catalog.convert_to({}, 'UTF8')), 'hex'), 16))::bit(64)::bigint",
      row);
}

namespace {
constexpr const char* kTotals = R"sql(
SELECT count(*), coalesce(sum({row_hash}), 0) + {checksum}
FROM {from}
)sql";
}  // namespace

std::string VerifyQuery::Totals(const std::string& checksum) const {
  return fmt::format(kTotals, fmt::arg("row_hash", row_hash_), fmt::arg("checksum", checksum),
                     fmt::arg("from", from_));
}

namespace {
constexpr const char* kSplit = R"sql(
SELECT h.key_hash & {next_mask} AS pattern, count(*), sum(h.row_hash)
FROM (SELECT {key_hash} AS key_hash, {row_hash} AS row_hash FROM {from}) AS h
WHERE h.key_hash & {mask} = ANY ({patterns})
GROUP BY 1
ORDER BY 1
)sql";
}  // namespace

std::string VerifyQuery::Split(const Buckets& buckets) const {
  return fmt::format(kSplit, fmt::arg("next_mask", Buckets::Mask(buckets.level + 1)),
                     fmt::arg("key_hash", key_hash_), fmt::arg("row_hash", row_hash_),
                     fmt::arg("from", from_), fmt::arg("mask", Buckets::Mask(buckets.level)),
                     fmt::arg("patterns", ArrayOf(buckets.patterns)));
}

namespace {
constexpr const char* kRows = R"sql(
SELECT h.key_hash, pg_catalog.left(min(h.key), 200), count(*), sum(h.row_hash)
FROM (SELECT {key_hash} AS key_hash, {key} AS key, {row_hash} AS row_hash FROM {from}) AS h
WHERE h.key_hash & {mask} = ANY ({patterns})
GROUP BY 1
ORDER BY 1
LIMIT {rows_max}
)sql";
}  // namespace

std::string VerifyQuery::Rows(const Buckets& buckets, size_t rows_max) const {
  return fmt::format(kRows, fmt::arg("key_hash", key_hash_), fmt::arg("key", key_),
                     fmt::arg("row_hash", row_hash_), fmt::arg("from", from_),
                     fmt::arg("mask", Buckets::Mask(buckets.level)),
                     fmt::arg("patterns", ArrayOf(buckets.patterns)),
                     fmt::arg("rows_max", rows_max));
}

namespace {
constexpr const char* kColumnHashes = R"sql(
SELECT DISTINCT ON (1) {key_hash}, {hashes}
FROM {from}
WHERE {key_hash} = ANY ({key_hashes})
ORDER BY 1
)sql";
}  // namespace

std::string VerifyQuery::ColumnHashes(std::span<const int64_t> key_hashes) const {
  std::vector<std::string> hashes;
  for (const auto& column : columns_) hashes.push_back(HashOf(RowText({column})));
  // A row filter in `from` must not bind to the condition that follows.
  const std::string from = fmt::format("(SELECT * FROM {}) AS t", from_);
  return fmt::format(kColumnHashes, fmt::arg("key_hash", key_hash_),
                     fmt::arg("hashes", fmt::format("{}", fmt::join(hashes, ", "))),
                     fmt::arg("from", from), fmt::arg("key_hashes", ArrayOf(key_hashes)));
}

}  // namespace tidemark::capture
