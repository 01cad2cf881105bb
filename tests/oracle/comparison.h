// Holds a store against the model, commit by commit: the state at each commit's end by position and
// by tx, at each basis by system time, between commits, and in the end every version, the order of
// all clocks, and the source's own present. Reports through gtest; stops at the first difference,
// since what follows it means nothing. Of tables that change it compares what is promised of them
// (promises.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pg/connection.h"
#include "tests/oracle/model.h"
#include "tests/oracle/promises.h"

namespace tidemark::oracle {

/// Waits until the store has received everything up to `upto`. Reconnects meanwhile; false when
/// the deadline passed.
bool WaitReceived(const std::string& store_dsn, base::Lsn upto, base::Deadline deadline);

class Comparison {
 public:
  /// States are compared at one commit of `every`; that each commit is a tx, and all versions, are
  /// compared regardless.
  explicit Comparison(std::string store_dsn, size_t every = 1);

  /// Compares at every commit since the last call (all of `commits` must be in the store): the
  /// tables it touches, at every 20th all small ones. False on a difference.
  bool Advance(const std::vector<Commit>& commits);
  /// Compares every version (of tables that change: those of the time in which each commit is
  /// promised) and the order of all clocks with what Advance has seen.
  bool CompareHistory();
  /// Compares the newest state with the source's own.
  bool ComparePresent(pg::Connection& source);
  size_t compared() const { return compared_; }
  /// Of tables that were read whole.
  size_t readings() const { return readings_; }

 private:
  struct Tx {
    int64_t tx = 0;
    uint32_t xid = 0;
    std::string source_time, commit_time;  // timestamptz text
    bool last_of_source_time = false;
    std::optional<std::string> system_time;  // of the basis that ends with it
  };
  void Load();
  void LoadReadings();
  bool CompareFirstCopy();
  bool CompareCommit(const Commit& commit, const Tx* tx);
  /// Checks the readings whose bases are at or before `upto`, where the model is.
  bool CompareReadings(base::Lsn upto);
  bool CompareReading(const std::string& table, Promises& promises, const Reading& reading);
  /// That there is no answer for a table that has no instant yet.
  bool CompareAbsent(const std::string& table, const std::string& position);
  Promises::Kind PromisedAt(const std::string& table, base::Lsn end) const;
  std::vector<std::string> ExactTables(base::Lsn end) const;
  std::map<std::string, Digest> Ask(const std::string& sql);
  std::optional<Digest> DigestAt(const std::string& table, const std::string& function,
                                 const std::string& at);
  const TableShape& Shape(const std::string& table) const { return shapes_.at(table); }
  /// The state of `tables` as `function`(NULL::t, `at`) shows it against the model's.
  bool CompareAt(const std::vector<std::string>& tables, const std::string& function,
                 const std::string& at);
  bool CompareVersions(const TableShape& table);
  void Explain(const std::string& table, const std::string& from);

  std::string store_dsn_;
  size_t every_;
  std::optional<pg::Connection> store_;
  Model model_;
  std::map<std::string, TableShape> shapes_;   // by the names that columns have in the end
  std::map<std::string, Promises> changing_;  // of those that the store has
  std::optional<base::Lsn> first_;  // the end of tx 1: the first copy
  bool begun_ = false;
  size_t next_ = 0, compared_ = 0, readings_ = 0;
  std::ptrdiff_t touching_ = 0;
  std::map<base::Lsn, Tx> txs_;
};

}  // namespace tidemark::oracle
