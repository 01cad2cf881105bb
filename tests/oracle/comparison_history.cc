// The part of comparison.h that looks at all versions and at the clocks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/oracle/comparison.h"

namespace tidemark::oracle {

using base::Lsn;

bool Comparison::CompareVersions(const TableShape& table) {
  const auto rows = store_->Execute(fmt::format(
      R"sql(
SELECT {}, f.end_lsn, t.end_lsn
FROM public_history.{} v
JOIN tidemark.tx f ON f.tx = v.tx_from LEFT JOIN tidemark.tx t ON t.tx = v.tx_to
)sql",
      RowHashSql(table, "v"), table.name));
  // A table that came later begins with its first reading, whose rows what had waited may have
  // changed.
  Lsn first = *first_;
  std::vector<std::pair<Lsn, Lsn>> open;
  if (const auto found = changing_.find(table.name); found != changing_.end()) {
    first = std::max(first, found->second.begins());
    open = found->second.spans();
  }
  const auto is_open = [&](const Version& version) {
    return version.to == version.from ||
           std::ranges::any_of(open, [&](const auto& span) {
             return version.from <= span.second && (!version.to || *version.to >= span.first);
           });
  };
  std::vector<Version> have, want = model_.VersionsOf(table.name, first);
  for (int i = 0; i < rows.rows(); ++i) {
    const auto to = rows.optional(i, 2);
    have.push_back({static_cast<uint64_t>(rows.int64(i, 0)), Lsn::Parse(rows.text(i, 1)),
                    to ? std::optional(Lsn::Parse(*to)) : std::nullopt});
  }
  std::erase_if(have, is_open);
  std::erase_if(want, is_open);
  std::sort(have.begin(), have.end());
  if (have == want) return true;
  std::vector<Version> missing, extra;
  std::set_difference(want.begin(), want.end(), have.begin(), have.end(),
                      std::back_inserter(missing));
  std::set_difference(have.begin(), have.end(), want.begin(), want.end(),
                      std::back_inserter(extra));
  const auto show = [](const std::vector<Version>& list) {
    std::string text = fmt::format("{} versions", list.size());
    for (size_t i = 0; i < std::min<size_t>(list.size(), 5); ++i) {
      text += fmt::format("\n    hash {} from {} to {}", list[i].hash, list[i].from.ToString(),
                          list[i].to ? list[i].to->ToString() : "-");
    }
    return text;
  };
  ADD_FAILURE() << "the versions of " << table.name << " differ from the model"
                << "\n  lacks " << show(missing) << "\n  has beyond it " << show(extra);
  return false;
}

bool Comparison::CompareHistory() {
  Load();
  bool same = true;
  const auto expect_none = [&](const std::string& what, const std::string& sql) {
    const auto count = store_->Value("SELECT count(*) FROM (" + sql + ") AS wrong");
    EXPECT_EQ(count, "0") << what;
    same = same && count == "0";
  };
  for (const auto& [name, promises] : changing_) {
    EXPECT_FALSE(promises.open()) << name << " was rewritten and not read since";
    same = same && !promises.open();
  }
  for (const auto& [name, table] : shapes_) {
    const auto view = "public_history." + name;
    expect_none(table.name + ": versions that end before they begin",
                fmt::format("SELECT FROM {} WHERE tx_from >= tx_to", view));
    expect_none(table.name + ": versions whose system or source time runs backwards",
                fmt::format("SELECT FROM {} WHERE system_from > system_to OR "
                            "source_from > source_to OR system_from IS NULL OR system_to IS NULL "
                            "OR source_from IS NULL OR source_to IS NULL",
                            view));
    if (table.key.empty()) continue;
    std::string key;
    for (const auto& column : table.key) key += (key.empty() ? "" : ", ") + column;
    expect_none(
        table.name + ": versions of one key that overlap",
        fmt::format("SELECT FROM (SELECT coalesce(tx_to, 9223372036854775807) > lead(tx_from) "
                    "OVER (PARTITION BY {} ORDER BY tx_from, tx_to) AS bad FROM {}) v "
                    "WHERE bad",
                    key, view));
    same = CompareVersions(table) && same;
  }
  expect_none("system times that do not grow from basis to basis",
              "SELECT FROM (SELECT system_time <= lag(system_time) OVER (ORDER BY number) AS bad "
              "FROM tidemark.basis) b WHERE bad");
  expect_none("bases that reach back",
              "SELECT FROM (SELECT tx_last <= lag(tx_last) OVER (PARTITION BY journal ORDER BY "
              "system_time) AS bad FROM tidemark.basis_journal) b WHERE bad");
  expect_none(
      "source times that go back, or positions that do not grow",
      // One without a commit stands where the commit before it does.
      "SELECT FROM (SELECT source_time < lag(source_time) OVER w OR end_lsn < lag(end_lsn) OVER w "
      "OR end_lsn = lag(end_lsn) OVER w AND coalesce(xid::text::bigint, 0) <> 0 AS bad "
      "FROM tidemark.tx WINDOW w AS (PARTITION BY journal ORDER BY tx)) t WHERE bad");
  expect_none("datasets whose count of rows is not the number of their rows", [&] {
    std::string sql;
    for (const auto& [name, table] : shapes_) {
      sql += fmt::format(
          "{0}SELECT FROM tidemark.version v JOIN tidemark.dataset d ON d.id = "
          "v.dataset WHERE d.table_name = '{1}' AND v.live_rows <> (SELECT count(*) "
          "FROM public.{1})",
          sql.empty() ? "" : " UNION ALL ", name);
    }
    return sql;
  }());
  return same;
}

}  // namespace tidemark::oracle
