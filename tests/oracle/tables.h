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

/// How the tables are published. Sources before version 15 have no row filters and no column lists.
enum class Publishing { kNamed, kNamedWhole, kAllTables };
/// From now on so; kNamed until it is called. Not while other threads ask for tables.
void PublishAs(Publishing publishing);
Publishing PublishedAs();

/// The published tables whose columns stay.
const std::vector<TableShape>& PublishedTables();
/// Those that are rewritten, lose or rename columns, or are created under the workload: their
/// states are promised from some positions on only (promises.h). `columns` are those that they
/// begin with.
const std::vector<TableShape>& ChangingTables();
/// The table of that name out of either, nullptr if it is not published.
const TableShape* FindPublished(std::string_view name);
/// The table that `session` of a workload creates, and its CREATE TABLE.
std::string LateTable(int session);
std::string CreateLateTableSql(int session);

/// Creates all tables but those that come later, fills some of them and creates the publication.
/// `changing`: with those that change.
std::string SchemaSql(bool changing = false);

/// Whether a statement met the very moment in which a table's columns changed: it answers when it
/// is asked again (docs/reference/limits.md).
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
