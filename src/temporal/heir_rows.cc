#include "temporal/heir_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace tidemark::temporal {

using base::QuoteIdentifier;

namespace {

// Columns: the dataset's number of a column, the heir's number of the one that had its name at tx
// $3.
constexpr const char* kSameNames = R"sql(
SELECT a.number, b.number
FROM tidemark.dataset_column a
JOIN tidemark.dataset_column b ON b.dataset = $2 AND b.name = a.name
WHERE a.dataset = $1 AND a.tx_from <= $3 AND (a.tx_to IS NULL OR a.tx_to > $3)
  AND b.tx_from <= $3 AND (b.tx_to IS NULL OR b.tx_to > $3)
)sql";

bool Casts(pg::Connection& store, const std::string& from, const std::string& to) {
  store.Execute("SAVEPOINT tidemark_cast");
  try {
    store.Execute(fmt::format("SELECT NULL::{}::{}", from, to));
    store.Execute("RELEASE SAVEPOINT tidemark_cast");
    return true;
  } catch (const base::Error& error) {
    if (error.IsTransient() || !store.IsOpen()) throw;
    store.Execute("ROLLBACK TO SAVEPOINT tidemark_cast; RELEASE SAVEPOINT tidemark_cast");
    return false;
  }
}

// What `column` of the heir reads as a value of `type`.
std::string ValueOf(pg::Connection& store, const DatasetColumn& column, bool retired,
                    const std::string& type) {
  const std::string name = QuoteIdentifier(retired ? RetiredName(column.number) : column.name);
  if (column.type_sql == type) return name;
  // One of the two got another type after the heir had ceased to be one.
  return Casts(store, column.type_sql, type) ? fmt::format("{}::{}", name, type)
                                             : "NULL::" + type;
}

}  // namespace

HeirRows::HeirRows(pg::Connection& store, const Dataset& dataset) {
  const auto id = std::to_string(dataset.id);
  // Most tables have none, and this is asked for each of them.
  if (store.Execute("SELECT FROM tidemark.inheritance WHERE parent = $1 LIMIT 1", {id}).rows() == 0) {
    return;
  }
  const auto rows = store.Execute(
      "SELECT h.heir, h.tx_from, h.tx_to FROM tidemark.heirs_of($1) h", {id});
  const auto all = LoadDatasets(store, dataset.journal);
  for (int i = 0; i < rows.rows(); ++i) {
    const auto heir = std::ranges::find(all, static_cast<int>(rows.int64(i, 0)), &Dataset::id);
    if (heir == all.end()) continue;
    Stretch stretch{.versions = heir->Versions(),
                    .from = rows.int64(i, 1),
                    .to = rows.is_null(i, 2) ? std::nullopt : std::optional(rows.int64(i, 2)),
                    .columns = {}};
    const int64_t newest = stretch.to ? *stretch.to - 1 : std::numeric_limits<int64_t>::max();
    const auto same = store.Execute(
        kSameNames, {id, std::to_string(heir->id), std::to_string(newest)});
    std::map<int, int> number_of;
    for (int r = 0; r < same.rows(); ++r) {
      number_of[static_cast<int>(same.int64(r, 0))] = static_cast<int>(same.int64(r, 1));
    }
    for (const auto& column : dataset.columns) {
      const auto number = number_of.find(column.number);
      Column read{.value = "NULL::" + column.type_sql};
      for (const auto* kept : {&heir->columns, &heir->retired}) {
        if (number == number_of.end()) break;
        const auto one = std::ranges::find(*kept, number->second, &DatasetColumn::number);
        if (one == kept->end()) continue;
        read = {.value = ValueOf(store, *one, kept == &heir->retired, column.type_sql),
                .null_before = one->null_before};
        break;
      }
      stretch.columns.push_back(std::move(read));
    }
    stretches_.push_back(std::move(stretch));
  }
}

std::string HeirRows::AsOf(const std::string& x) const {
  std::string text;
  for (const auto& stretch : stretches_) {
    std::string columns;
    for (const auto& column : stretch.columns) {
      columns += columns.empty() ? "" : ", ";
      columns += column.null_before == 0
                     ? column.value
                     : fmt::format("CASE WHEN {} >= {} THEN {} END", x, column.null_before,
                                   column.value);
    }
    std::string while_heir = fmt::format("{} >= {}", x, stretch.from);
    if (stretch.to) while_heir += fmt::format(" AND {} < {}", x, *stretch.to);
    text += fmt::format(R"sql(
  UNION ALL
  SELECT {columns} FROM {versions} WHERE _from <= {x} AND _to > {x} AND {while_heir})sql",
                        fmt::arg("columns", columns), fmt::arg("versions", stretch.versions),
                        fmt::arg("x", x), fmt::arg("while_heir", while_heir));
  }
  return text;
}

}  // namespace tidemark::temporal
