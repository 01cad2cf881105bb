#include "tests/oracle/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/identifier.h"

namespace tidemark::oracle {

using base::Deadline;
using base::Lsn;

namespace {

constexpr int kTriesMost = 5;  // of a statement that meets changes of columns
constexpr size_t kAllTablesEvery = 20;
constexpr std::chrono::milliseconds kPollInterval{20};

std::vector<std::string> SmallTables() {
  std::vector<std::string> names;
  for (const auto& table : PublishedTables()) {
    if (!table.large) names.push_back(table.name);
  }
  return names;
}

std::map<std::string, Digest> Digests(pg::Connection& server, const std::string& sql) {
  std::map<std::string, Digest> digests;
  const auto rows = server.Execute(sql);
  for (int i = 0; i < rows.rows(); ++i) {
    digests[rows.str(i, 0)] = {rows.int64(i, 1), static_cast<uint64_t>(rows.int64(i, 2))};
  }
  return digests;
}

}  // namespace

bool WaitReceived(const std::string& store_dsn, Lsn upto, Deadline deadline) {
  std::optional<pg::Connection> store;
  while (!deadline.passed()) {
    try {
      if (!store) store.emplace(pg::Connection::Open({.dsn = store_dsn}, deadline));
      if (store->Execute("SELECT to_regclass('tidemark.resume') IS NOT NULL").boolean(0, 0) &&
          store->Execute("SELECT FROM tidemark.resume WHERE received_lsn >= $1::pg_lsn",
                         {upto.ToString()})
                  .rows() > 0) {
        return true;
      }
    } catch (const base::Error&) {
      store.reset();  // the store may be down, or being set up
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

Comparison::Comparison(std::string store_dsn, size_t every)
    : store_dsn_(std::move(store_dsn)), every_(every) {}

void Comparison::Load() {
  // A line broken by a crash of the server shows only when it is used.
  try {
    if (store_) store_->Execute("SELECT 1");
  } catch (const base::Error&) {
    store_.reset();
  }
  if (!store_) {
    store_.emplace(pg::Connection::Open(
        {.dsn = store_dsn_, .settings = {{"TimeZone", "UTC"}, {"DateStyle", "ISO"}}},
        Deadline::After(std::chrono::seconds(20))));
  }
  txs_.clear();
  const auto rows = store_->Execute(R"sql(
SELECT t.end_lsn, t.tx, coalesce(t.xid::text::bigint, 0), t.source_time,
       coalesce(t.commit_time, t.source_time),
       t.source_time IS DISTINCT FROM lead(t.source_time) OVER (ORDER BY t.tx), b.system_time
FROM tidemark.tx t
LEFT JOIN tidemark.basis_journal b ON b.journal = t.journal AND b.tx_last = t.tx
ORDER BY t.tx
)sql");
  for (int i = 0; i < rows.rows(); ++i) {
    const Lsn end = Lsn::Parse(rows.text(i, 0));
    if (i == 0) first_ = end;
    // Columns that changed without a row: no commit of the source.
    if (i > 0 && rows.int64(i, 2) == 0) continue;
    const Tx tx{rows.int64(i, 1),   static_cast<uint32_t>(rows.int64(i, 2)),
                rows.str(i, 3),     rows.str(i, 4),
                rows.boolean(i, 5), rows.optional(i, 6)};
    EXPECT_TRUE(txs_.emplace(end, tx).second) << "two txs end at " << end.ToString();
  }
}

void Comparison::Explain(const std::string& name, const std::string& from) {
  const TableShape& table = *FindPublished(name);
  const auto rows =
      store_->Execute(fmt::format("SELECT {} FROM {} r", RowTextSql(table, "r"), from));
  std::vector<std::string> have, want = model_.RowsOf(name), missing, extra;
  for (int i = 0; i < rows.rows(); ++i) have.push_back(rows.str(i, 0));
  std::sort(have.begin(), have.end());
  std::set_difference(want.begin(), want.end(), have.begin(), have.end(),
                      std::back_inserter(missing));
  std::set_difference(have.begin(), have.end(), want.begin(), want.end(),
                      std::back_inserter(extra));
  const auto show = [](const std::vector<std::string>& list) {
    std::string text = fmt::format("{} rows", list.size());
    for (size_t i = 0; i < std::min<size_t>(list.size(), 5); ++i) {
      text += "\n    " + list[i].substr(0, 160);
    }
    return text;
  };
  ADD_FAILURE() << from << " differs from the model"
                << "\n  lacks " << show(missing) << "\n  has beyond it " << show(extra);
}

bool Comparison::CompareAt(const std::vector<std::string>& tables, const std::string& function,
                           const std::string& at) {
  if (tables.empty()) return true;
  std::string sql;
  const auto from = [&](const std::string& name) {
    return fmt::format("tidemark.{}(NULL::public.{}, {})", function, name, at);
  };
  for (const auto& name : tables) {
    sql += (sql.empty() ? "" : "\nUNION ALL ") + DigestSql(*FindPublished(name), from(name));
  }
  try {
    const auto digests = [&] {
      for (int tried = 1;; ++tried) {
        try {
          return Digests(*store_, sql);
        } catch (const base::Error& error) {
          if (!MetChangeOfColumns(error) || tried == kTriesMost) throw;
        }
      }
    }();
    for (const auto& name : tables) {
      if (digests.at(name) == model_.DigestOf(name)) continue;
      Explain(name, from(name));
      return false;
    }
  } catch (const base::Error& error) {
    ADD_FAILURE() << function << " at " << at << ": " << error.Full();
    return false;
  }
  return true;
}

bool Comparison::CompareCommit(const Commit& commit, const Tx* tx) {
  const bool all = compared_ % kAllTablesEvery == 0;
  std::set<std::string> touched;
  for (const auto& change : commit.changes) {
    touched.insert(change.tables.begin(), change.tables.end());
  }
  std::vector<std::string> tables(touched.begin(), touched.end());
  if (all) {
    for (const auto& name : SmallTables()) {
      if (!touched.contains(name)) tables.push_back(name);
    }
  }
  ++compared_;
  const auto position = base::QuoteLiteral(commit.end.ToString());
  if (!CompareAt(tables, "as_of_position", position)) return false;
  if (tx == nullptr) return true;
  if (!CompareAt(tables, "as_of_tx", std::to_string(tx->tx))) return false;
  if (tx->system_time && !CompareAt(tables, "as_of", base::QuoteLiteral(*tx->system_time))) {
    return false;
  }
  return !(all && tx->last_of_source_time) ||
         CompareAt(tables, "as_of_source", base::QuoteLiteral(tx->source_time));
}

bool Comparison::Advance(const std::vector<Commit>& commits) {
  Load();
  if (!first_) {
    ADD_FAILURE() << "the store holds nothing yet";
    return false;
  }
  std::vector<std::string> all;
  for (const auto& table : PublishedTables()) all.push_back(table.name);
  const auto compare_first_copy = [&] {
    begun_ = true;
    return CompareAt(all, "as_of_position", base::QuoteLiteral(first_->ToString())) &&
           CompareAt(all, "as_of_tx", "1");
  };
  for (; next_ < commits.size(); ++next_) {
    const Commit& commit = commits[next_];
    if (commit.end > *first_) {
      if (!begun_ && !compare_first_copy()) return false;
      // Up to the byte before its end the commit is not there.
      if (compared_ % kAllTablesEvery == 1 &&
          !CompareAt(SmallTables(), "as_of_position",
                     base::QuoteLiteral(Lsn(commit.end.value() - 1).ToString()))) {
        return false;
      }
    }
    model_.Apply(commit);
    if (commit.end <= *first_) continue;
    const auto found = txs_.find(commit.end);
    const Tx* tx = found == txs_.end() ? nullptr : &found->second;
    if (commit.changes.empty()) {
      EXPECT_EQ(tx, nullptr) << "a tx for a commit without published changes, at "
                             << commit.end.ToString();
    } else {
      ++touching_;
      if (tx == nullptr) {
        ADD_FAILURE() << "the commit at " << commit.end.ToString() << " is no tx of the store";
        return false;
      }
      EXPECT_EQ(tx->xid, commit.xid) << commit.end.ToString();
      EXPECT_EQ(tx->commit_time, commit.committed_at) << commit.end.ToString();
    }
    if (next_ % every_ == 0 && !CompareCommit(commit, tx)) return false;
  }
  if (!begun_ && !compare_first_copy()) return false;
  // The store may have gone on since.
  const Lsn last = commits.empty() ? *first_ : std::max(*first_, commits.back().end);
  const auto known = txs_.upper_bound(last);
  EXPECT_EQ(touching_ + 1, std::distance(txs_.begin(), known))
      << "commits that touch a published table, and txs";
  return !testing::Test::HasNonfatalFailure() && !testing::Test::HasFatalFailure();
}

bool Comparison::CompareVersions(const TableShape& table) {
  const auto rows = store_->Execute(fmt::format(
      R"sql(
SELECT {}, f.end_lsn, t.end_lsn
FROM public_history.{} v
JOIN tidemark.tx f ON f.tx = v.tx_from LEFT JOIN tidemark.tx t ON t.tx = v.tx_to
)sql",
      RowHashSql(table, "v"), table.name));
  std::vector<Version> have, want = model_.VersionsOf(table.name, *first_);
  for (int i = 0; i < rows.rows(); ++i) {
    const auto to = rows.optional(i, 2);
    have.push_back({static_cast<uint64_t>(rows.int64(i, 0)), Lsn::Parse(rows.text(i, 1)),
                    to ? std::optional(Lsn::Parse(*to)) : std::nullopt});
  }
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
  for (const auto& table : PublishedTables()) {
    const auto view = "public_history." + table.name;
    expect_none(table.name + ": versions that end before they begin",
                fmt::format("SELECT FROM {} WHERE tx_from >= tx_to", view));
    expect_none(table.name + ": versions whose system or source time runs backwards",
                fmt::format("SELECT FROM {} WHERE system_from > system_to OR "
                            "source_from > source_to OR system_from IS NULL OR system_to IS NULL "
                            "OR source_from IS NULL OR source_to IS NULL",
                            view));
    if (table.key.empty()) continue;
    std::string key;
    for (const auto& name : table.key) key += (key.empty() ? "" : ", ") + name;
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
  expect_none("datasets whose count of rows is not the number of their rows", [] {
    std::string sql;
    for (const auto& table : PublishedTables()) {
      sql += fmt::format(
          "{0}SELECT FROM tidemark.version v JOIN tidemark.dataset d ON d.id = "
          "v.dataset WHERE d.table_name = '{1}' AND v.live_rows <> (SELECT count(*) "
          "FROM public.{1})",
          sql.empty() ? "" : " UNION ALL ", table.name);
    }
    return sql;
  }());
  return same;
}

bool Comparison::ComparePresent(pg::Connection& source) {
  Load();
  std::string sql;
  for (const auto& table : PublishedTables()) {
    sql += (sql.empty() ? "" : "\nUNION ALL ") + DigestSql(table, "public." + table.name);
    if (table.only_positive_n) sql += " WHERE n > 0";
  }
  source.Execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'");
  bool same = true;
  const auto upstream = Digests(source, sql);
  for (const auto& [name, digest] : Digests(*store_, sql)) {
    EXPECT_EQ(digest, model_.DigestOf(name)) << "latest of " << name << " against the model";
    EXPECT_EQ(digest, upstream.at(name)) << "latest of " << name << " against the source";
    same = same && digest == upstream.at(name) && digest == model_.DigestOf(name);
  }
  return same;
}

}  // namespace tidemark::oracle
