#include "temporal/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/kill_point.h"
#include "columnar/type_oid.h"
#include "temporal/version_chain.h"

namespace tidemark::temporal {

using base::Error;
using base::QuoteIdentifier;

namespace {

constexpr int kOffendersShown = 10;
constexpr int kOrdinalsShown = 5;

std::string KeyText(const Dataset& d, const std::vector<std::string>& keys) {
  std::string text;
  for (size_t i = 0; i < keys.size(); ++i) {
    text += fmt::format("{}{} || coalesce({}::text, 'NULL')", i == 0 ? "" : " || ', ' || ",
                        base::QuoteLiteral(base::DisplayIdentifier(d.key_columns[i]) + "="),
                        keys[i]);
  }
  return text;
}

std::string Joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

// "id=7 in rows 3, 9; id=8 in rows …"
std::string Listed(const pg::Result& offenders) {
  std::string text;
  for (int i = 0; i < std::min(offenders.rows(), kOffendersShown); ++i) {
    text += fmt::format("{}{} in {} {}", i == 0 ? "" : "; ", offenders.text(i, 0),
                        offenders.text(i, 1).find(',') == std::string_view::npos ? "row" : "rows",
                        offenders.text(i, 1));
  }
  return text + (offenders.rows() > kOffendersShown ? "; and others." : ".");
}

}  // namespace

void RefuseBadKeys(pg::Connection& store, const Dataset& d, const std::string& rows,
                   const std::vector<std::string>& keys, const std::string& ordinal) {
  std::vector<std::string> nulls;
  for (const auto& key : keys) nulls.push_back(key + " IS NULL");
  const std::string any_null = Joined(nulls, " OR ");
  const std::string columns = Joined(d.key_columns, ", ");
  const auto null_keys = store.Execute(
      fmt::format("SELECT {}, {} AS n FROM {} WHERE {} ORDER BY n LIMIT {}", KeyText(d, keys),
                  ordinal, rows, any_null, kOffendersShown + 1));
  if (null_keys.rows() > 0) {
    throw Error(base::kNotNullViolation,
                fmt::format("key ({}) of {} is NULL in some rows", columns, d.name.Display()))
        .Detail(Listed(null_keys))
        .Hint("Declare a key that every row has.");
  }
  const auto twice = store.Execute(fmt::format(
      R"sql(
SELECT {text}, pg_catalog.array_to_string((pg_catalog.array_agg({ordinal} ORDER BY {ordinal}))[1:{most}], ', ')
       || CASE WHEN count(*) > {most} THEN ', …' ELSE '' END
FROM {rows} GROUP BY {keys} HAVING count(*) > 1 ORDER BY min({ordinal}) LIMIT {limit}
)sql",
      fmt::arg("text", KeyText(d, keys)), fmt::arg("ordinal", ordinal),
      fmt::arg("most", kOrdinalsShown), fmt::arg("rows", rows), fmt::arg("keys", Joined(keys, ", ")),
      fmt::arg("limit", kOffendersShown + 1)));
  if (twice.rows() > 0) {
    throw Error(base::kUniqueViolation,
                fmt::format("key ({}) of {} is not unique", columns, d.name.Display()))
        .Detail(Listed(twice))
        .Hint("Declare a key that tells the rows apart.");
  }
}

void RefuseStagedKeys(pg::Connection& store, const Dataset& dataset, const Stage& stage,
                      const std::vector<std::string>& key) {
  Dataset keyed = dataset;
  keyed.key_columns = key;
  std::vector<std::string> values;
  for (const auto& name : key) values.push_back(stage.Value(name));
  RefuseBadKeys(store, keyed, stage.table() + " s", values, "s._ordinal");
}

void PreferParallel(pg::Connection& store) {
  store.Execute(R"sql(
SET LOCAL work_mem = '64MB'; SET LOCAL jit = off; SET LOCAL parallel_setup_cost = 100;
SET LOCAL parallel_tuple_cost = 0.01; SET LOCAL min_parallel_table_scan_size = '1MB'
)sql");
}

Reduction::Reduction(pg::Connection& store, const Dataset& dataset, const Stage& stage)
    : store_(&store),
      dataset_(&dataset),
      stage_(&stage),
      changed_(fmt::format("pg_temp.changed_{}", dataset.id)) {}

namespace {

// Types whose values are the same whenever they compare as equal, so that the cheaper comparison
// will do. Not numeric, floats, intervals, jsonb, bpchar: 1.0 = 1.00.
bool EqualMeansSame(pg::Oid type) {
  switch (type) {
    case columnar::kBool:
    case columnar::kInt2:
    case columnar::kInt4:
    case columnar::kInt8:
    case columnar::kDate:
    case columnar::kTimestamp:
    case columnar::kTimestamptz:
    case columnar::kBytea:
    case columnar::kUuid:
    case columnar::kText:
    case columnar::kVarchar:
      return true;
    default:
      return false;
  }
}

}  // namespace

// SQL: the staged row `s` is not the current row `c` of the same key.
std::string Reduction::Differs() const {
  std::string differs, staged, current;
  for (const auto& column : dataset_->columns) {
    const std::string name = "c." + QuoteIdentifier(column.name);
    const std::string value = stage_->Value(column.name);
    if (EqualMeansSame(column.source_type)) {
      const bool key = std::find(dataset_->key_columns.begin(), dataset_->key_columns.end(),
                                 column.name) != dataset_->key_columns.end();
      if (!key) differs += fmt::format(" OR {} IS DISTINCT FROM {}", value, name);
      continue;
    }
    staged += (staged.empty() ? "" : ", ") + value;
    current += (current.empty() ? "" : ", ") + name;
  }
  if (!staged.empty()) {
    differs += fmt::format(" OR ROW({})::record *<> ROW({})::record", staged, current);
  }
  return differs;
}

void Reduction::CheckKeys(bool all, int64_t inserted) {
  if (all) RefuseStagedKeys(*store_, *dataset_, *stage_, dataset_->key_columns);
  std::vector<std::string> keys;
  for (const auto& key : dataset_->key_columns) keys.push_back(stage_->Value(key));
  if (inserted > 0) {
    RefuseBadKeys(*store_, *dataset_,
                  fmt::format("{} x JOIN {} s ON s.ctid = x.staged AND x.current IS NULL", changed_,
                              stage_->table()),
                  keys, "s._ordinal");
  }
}

void Reduction::CompareByKey(bool complete) {
  const Dataset& d = *dataset_;
  std::string same_key;
  for (const auto& key : d.key_columns) {
    same_key += fmt::format("{}c.{} = {}", same_key.empty() ? "" : " AND ", QuoteIdentifier(key),
                            stage_->Value(key));
  }
  // Both in the order of the key: neither is sorted or hashed.
  if (stage_->ordered()) store_->Execute("SET LOCAL enable_hashjoin = off");
  store_->Execute(fmt::format(
      "CREATE TEMPORARY TABLE changed_{} ON COMMIT DROP AS "
      "SELECT s.ctid AS staged, c.ctid AS current FROM {} s {} JOIN {} ON {} "
      "WHERE c.ctid IS NULL OR s.ctid IS NULL{}",
      d.id, stage_->table(), complete ? "FULL" : "LEFT", stage_->Opposite(d.Current()), same_key,
      Differs()));
  store_->Execute("SET LOCAL enable_hashjoin = on");
  // From here on this transaction's lock keeps the table as it is.
  stage_->CheckFile(*store_, d);
}

// Equal rows are told apart by counting them. A multiset has the hash of each row's bytes; of other
// rows the text is hashed, from which every value can be made again.
void Reduction::CompareByRow() {
  const Dataset& d = *dataset_;
  std::string staged_hash = "s._hash", current_hash = "c._hash";
  if (d.keying != Keying::kMultiset) {
    std::string staged, current;
    for (const auto& column : d.columns) {
      staged += (staged.empty() ? "" : ", ") + stage_->Value(column.name) + "::pg_catalog.text";
      current += fmt::format("{}c.{}::pg_catalog.text", current.empty() ? "" : ", ",
                             QuoteIdentifier(column.name));
    }
    staged_hash = fmt::format("pg_catalog.md5(ROW({})::pg_catalog.text)", staged);
    current_hash = fmt::format("pg_catalog.md5(ROW({})::pg_catalog.text)", current);
  }
  store_->Execute(fmt::format(
      R"sql(
CREATE TEMPORARY TABLE changed_{id} ON COMMIT DROP AS
SELECT s.at AS staged, c.at AS current
FROM (SELECT s.ctid AS at, {staged} AS h,
             pg_catalog.row_number() OVER (PARTITION BY {staged} ORDER BY s._ordinal) AS n
      FROM {stage} s) AS s
FULL JOIN (SELECT c.ctid AS at, {current} AS h,
                  pg_catalog.row_number() OVER (PARTITION BY {current} ORDER BY c.ctid) AS n
           FROM {table} c) AS c ON c.h = s.h AND c.n = s.n
WHERE c.at IS NULL OR s.at IS NULL
)sql",
      fmt::arg("id", d.id), fmt::arg("staged", staged_hash), fmt::arg("current", current_hash),
      fmt::arg("stage", stage_->table()), fmt::arg("table", d.Current())));
}

const TransitionSummary& Reduction::Reduce(int64_t live_rows, bool complete) {
  const Dataset& d = *dataset_;
  const bool keyed = d.keying == Keying::kKey;
  PreferParallel(*store_);
  keyed ? CompareByKey(complete) : CompareByRow();
  const auto counted = store_->Execute(
      fmt::format("SELECT count(staged), count(*) FILTER (WHERE current IS NULL), "
                  "count(*) FILTER (WHERE staged IS NULL) FROM {}",
                  changed_));
  const int64_t inserted = counted.int64(0, 1);
  summary_.puts = counted.int64(0, 0);
  summary_.deletions = counted.int64(0, 2);
  // Every current row was found by one staged row or is gone: unless a key was staged twice, the
  // counts agree. Keys that are new are looked at one by one.
  const int64_t found = stage_->met() + stage_->rows() - inserted;
  const bool contradict = complete && found + summary_.deletions != live_rows;
  if (keyed) CheckKeys(contradict || !complete, inserted);
  if (contradict) {
    throw Error(base::kDataCorrupted,
                fmt::format("{} has other rows than were counted: {} of {} were found and {} were "
                            "not",
                            d.name.Display(), found, live_rows, summary_.deletions))
        .Hint("Recompute its versions with \"tidemark verify --versions\".");
  }
  summary_.rows_added = inserted - summary_.deletions;
  summary_.to_history = summary_.puts - inserted + summary_.deletions;
  if (!summary_.empty()) {
    store_->Execute("ANALYZE " + changed_);
    std::vector<std::string> values, key;
    for (const auto& column : d.columns) {
      values.push_back(stage_->Value(column.name) + "::pg_catalog.text");
    }
    for (const auto& column : d.columns) {  // without a key, by the whole row
      const bool of_key = std::ranges::find(d.key_columns, column.name) != d.key_columns.end();
      if (!keyed || of_key) key.push_back("c." + QuoteIdentifier(column.name) + "::pg_catalog.text");
    }
    summary_.digest = ComputeDigest(
        *store_, fmt::format("SELECT {} AS h FROM {} x JOIN {} s ON s.ctid = x.staged UNION ALL "
                             "SELECT {} FROM {} x JOIN {} c ON c.ctid = x.current "
                             "WHERE x.staged IS NULL",
                             RowHashSql(*store_, 'P', values), changed_, stage_->table(),
                             RowHashSql(*store_, 'D', key), changed_, d.Current()));
  }
  base::KillPoint("reduce.done");
  return summary_;
}

void Reduction::Apply(int64_t tx) {
  if (summary_.empty()) return;
  const Dataset& d = *dataset_;
  const std::string current = d.Current();
  const std::string stored = d.StoredColumnList();
  if (summary_.to_history > 0) {
    store_->Execute(fmt::format(
        R"sql(
INSERT INTO {history} ({stored}, _from, _to)
SELECT {values}, c._from, {tx}
FROM {changed} x JOIN {current} c ON c.ctid = x.current
)sql",
        fmt::arg("history", d.OpenHistory()), fmt::arg("stored", stored),
        fmt::arg("values", d.StoredColumnList("c.")), fmt::arg("tx", tx),
        fmt::arg("changed", changed_), fmt::arg("current", current)));
    store_->Execute(fmt::format(
        "DELETE FROM {} c USING {} x WHERE c.ctid = x.current AND x.staged IS NULL", current,
        changed_));
    std::string sets;
    for (const auto& column : d.columns) {
      sets += fmt::format("{} = {}, ", QuoteIdentifier(column.name), stage_->Value(column.name));
    }
    for (const auto& column : d.retired) {
      sets += QuoteIdentifier(RetiredName(column.number)) + " = NULL, ";
    }
    store_->Execute(fmt::format(
        "UPDATE {} c SET {}_from = {} FROM {} x JOIN {} s ON s.ctid = x.staged "
        "WHERE c.ctid = x.current",
        current, sets, tx, changed_, stage_->table()));
  }
  const std::string hash = d.keying == Keying::kMultiset ? ", _hash" : "";
  const std::string comma = d.columns.empty() ? "" : ", ";
  store_->Execute(fmt::format(
      "INSERT INTO {} ({}{}_from{}) SELECT {}{}{}{} FROM {} x JOIN {} s ON s.ctid = x.staged "
      "WHERE x.current IS NULL ORDER BY s._ordinal",
      current, d.ColumnList(), comma, hash, stage_->Values(d.columns), comma, tx,
      hash.empty() ? "" : ", s._hash", changed_, stage_->table()));
  base::KillPoint("apply.done");
}

}  // namespace tidemark::temporal
