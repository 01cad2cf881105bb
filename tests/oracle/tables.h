// The tables that the random workload writes, and what the model must know of each. Names are plain
// lower case and all live in schema public.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tidemark::oracle {

/// The publication of the workload's tables; `unpublished` is not in it.
inline constexpr std::string_view kPublication = "tidemark";

struct TableShape {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::string> key;  // the replica identity; empty: rows are a multiset
  bool large = false;            // asking for all of its rows takes long
  bool only_positive_n = false;  // published with the row filter n > 0
};

/// For sources before version 15, which have neither row filters nor column lists. Call it first.
void LeaveOutFilters();

/// The published tables.
const std::vector<TableShape>& PublishedTables();
/// The published table of that name, nullptr if it is not published.
const TableShape* FindPublished(std::string_view name);

/// Creates all tables, fills some of them and creates the publication.
std::string SchemaSql();

/// Whether a statement met the very moment in which a table's columns changed: it answers when it is asked
/// again (docs/reference/limits.md).
bool MetChangeOfColumns(const base::Error& error);

/// The sum of all balances of account_a and account_b, which no transaction changes.
inline constexpr int kMoney = 2 * 20 * 1000;

/// An SQL expression over `table`'s columns, qualified by `alias`: one text per row, equal exactly
/// when all values are. RowText (model.h) makes the same text.
std::string RowTextSql(const TableShape& table, std::string_view alias);
/// The first 40 bits of that text's MD5, as bigint.
std::string RowHashSql(const TableShape& table, std::string_view alias);
/// One row: table's name, count of rows, sum of their hashes; `from` is what to read. The text is
/// as TimeZone UTC and DateStyle ISO write it.
std::string DigestSql(const TableShape& table, std::string_view from);

}  // namespace tidemark::oracle
