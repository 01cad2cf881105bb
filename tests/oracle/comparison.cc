#include "tests/oracle/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
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
    : store_dsn_(std::move(store_dsn)), every_(every) {
  for (const auto& table : PublishedTables()) shapes_.emplace(table.name, table);
}

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
    // Columns that changed without a row, or tables that were read whole: no commit of the source.
    if (i > 0 && rows.int64(i, 2) == 0) continue;
    const Tx tx{rows.int64(i, 1),   static_cast<uint32_t>(rows.int64(i, 2)),
                rows.str(i, 3),     rows.str(i, 4),
                rows.boolean(i, 5), rows.optional(i, 6)};
    EXPECT_TRUE(txs_.emplace(end, tx).second) << "two txs end at " << end.ToString();
  }
  LoadReadings();
}

void Comparison::Explain(const std::string& name, const std::string& from) {
  const TableShape& table = Shape(name);
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

// A statement that meets a change of columns is asked again.
std::map<std::string, Digest> Comparison::Ask(const std::string& sql) {
  for (int tried = 1;; ++tried) {
    try {
      return Digests(*store_, sql);
    } catch (const base::Error& error) {
      if (!MetChangeOfColumns(error) || tried == kTriesMost) throw;
    }
  }
}

std::optional<Digest> Comparison::DigestAt(const std::string& table, const std::string& function,
                                           const std::string& at) {
  try {
    return Ask(DigestSql(Shape(table),
                         fmt::format("tidemark.{}(NULL::public.{}, {})", function, table, at)))
        .at(table);
  } catch (const base::Error& error) {
    ADD_FAILURE() << function << " of " << table << " at " << at << ": " << error.Full();
    return std::nullopt;
  }
}

bool Comparison::CompareAt(const std::vector<std::string>& tables, const std::string& function,
                           const std::string& at) {
  if (tables.empty()) return true;
  std::string sql;
  const auto from = [&](const std::string& name) {
    return fmt::format("tidemark.{}(NULL::public.{}, {})", function, name, at);
  };
  for (const auto& name : tables) {
    sql += (sql.empty() ? "" : "\nUNION ALL ") + DigestSql(Shape(name), from(name));
  }
  try {
    const auto digests = Ask(sql);
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
    for (const auto& name : change.tables) {
      if (PromisedAt(name, commit.end) == Promises::Kind::kExact) touched.insert(name);
    }
  }
  std::vector<std::string> tables(touched.begin(), touched.end());
  if (all) {
    for (const auto& name : ExactTables(commit.end)) {
      if (!touched.contains(name)) tables.push_back(name);
    }
  }
  ++compared_;
  const auto position = base::QuoteLiteral(commit.end.ToString());
  if (all) {
    for (const auto& [name, promises] : changing_) {
      if (promises.absent() && !CompareAbsent(name, position)) return false;
    }
  }
  if (!CompareAt(tables, "as_of_position", position)) return false;
  if (tx == nullptr) return true;
  if (!CompareAt(tables, "as_of_tx", std::to_string(tx->tx))) return false;
  if (tx->system_time && !CompareAt(tables, "as_of", base::QuoteLiteral(*tx->system_time))) {
    return false;
  }
  return !(all && tx->last_of_source_time) ||
         CompareAt(tables, "as_of_source", base::QuoteLiteral(tx->source_time));
}

bool Comparison::CompareFirstCopy() {
  begun_ = true;
  std::vector<std::string> all;
  for (const auto& table : PublishedTables()) all.push_back(table.name);
  for (const auto& [name, promises] : changing_) {
    if (!promises.absent()) all.push_back(name);
  }
  return CompareAt(all, "as_of_position", base::QuoteLiteral(first_->ToString())) &&
         CompareAt(all, "as_of_tx", "1");
}

bool Comparison::Advance(const std::vector<Commit>& commits) {
  Load();
  if (!first_) {
    ADD_FAILURE() << "the store holds nothing yet";
    return false;
  }
  for (size_t i = next_; i < commits.size(); ++i) {
    for (const auto& change : commits[i].changes) {
      if (change.kind != Change::Kind::kRename) continue;
      auto& columns = shapes_.at(change.tables[0]).columns;
      *std::find(columns.begin(), columns.end(), change.from) = change.to;
    }
  }
  for (; next_ < commits.size(); ++next_) {
    const Commit& commit = commits[next_];
    if (commit.end > *first_) {
      if (!begun_ && !CompareFirstCopy()) return false;
      if (!CompareReadings(Lsn(commit.end.value() - 1))) return false;
      // Up to the byte before its end the commit is not there.
      if (compared_ % kAllTablesEvery == 1 &&
          !CompareAt(SmallTables(), "as_of_position",
                     base::QuoteLiteral(Lsn(commit.end.value() - 1).ToString()))) {
        return false;
      }
    }
    model_.Apply(commit);
    // A table may have been published before the first copy's snapshot, and after its tables were
    // chosen.
    const bool in_first = commit.end <= *first_;
    for (auto& [name, promises] : changing_) {
      if (!in_first || promises.absent()) promises.Note(commit, model_.DigestOf(name));
    }
    if (in_first) continue;
    const auto found = txs_.find(commit.end);
    const Tx* tx = found == txs_.end() ? nullptr : &found->second;
    bool certain = false, possible = false;
    for (const auto& change : commit.changes) {
      for (const auto& name : change.tables) {
        if (!change.of_rows()) continue;
        const auto promised = PromisedAt(name, commit.end);
        certain = certain || promised == Promises::Kind::kExact;
        possible = possible || promised != Promises::Kind::kAbsent;
      }
    }
    if (!possible) {
      EXPECT_EQ(tx, nullptr) << "a tx for a commit without published changes, at "
                             << commit.end.ToString();
    } else if (tx != nullptr) {
      ++touching_;
      EXPECT_EQ(tx->xid, commit.xid) << commit.end.ToString();
      EXPECT_EQ(tx->commit_time, commit.committed_at) << commit.end.ToString();
    } else if (certain) {
      ADD_FAILURE() << "the commit at " << commit.end.ToString() << " is no tx of the store";
      return false;
    }
    if (next_ % every_ == 0 && !CompareCommit(commit, tx)) return false;
  }
  if (!begun_ && !CompareFirstCopy()) return false;
  // The store may have gone on since.
  const Lsn last = commits.empty() ? *first_ : std::max(*first_, commits.back().end);
  if (!CompareReadings(last)) return false;
  const auto known = txs_.upper_bound(last);
  EXPECT_EQ(touching_ + 1, std::distance(txs_.begin(), known))
      << "commits that touch a published table, and txs";
  return !testing::Test::HasNonfatalFailure() && !testing::Test::HasFatalFailure();
}

bool Comparison::ComparePresent(pg::Connection& source) {
  Load();
  std::string sql;
  for (const auto& [name, table] : shapes_) {
    sql += (sql.empty() ? "" : "\nUNION ALL ") + DigestSql(table, "public." + name);
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
