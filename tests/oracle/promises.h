// What a store promises of a table whose rows change unseen, or that comes later, commit by commit
// (docs/design/0010, docs/reference/limits.md):
//
//   absent ── copied and attached ──► exact ── rewritten, or read again for its columns ──► open
//                                       ▲                                                   │
//                                       └───────────────────── read whole ──────────────────┘
//
// absent: it has no instant yet, and asking for one is an error.
// exact: the state at each commit.
// open: from the commit that rewrote its rows; or, where its columns changed, from the newest
// publish before its reading was asked for. Until its reading is published it stands still at the
// latest from the moment that was asked for, and from the rewriting commit on if its types tell.
//
// A reading shows a state that the source had between the commit that made it necessary and its
// basis, and with what waited meanwhile the state at its basis. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lsn.h"
#include "tests/oracle/model.h"

namespace tidemark::oracle {

/// A table that was read whole: the basis that shows it.
struct Reading {
  int64_t first_tx = 0, last_tx = 0;  // what was read, and what had waited
  base::Lsn at;                       // the source's position of both
  // Published when it was asked for; of a new table zero.
  base::Lsn asked_after;
  int64_t asked_after_tx = 0;
};

class Promises {
 public:
  enum class Kind { kAbsent, kExact, kOpen };

  Promises(std::string table, bool absent) : table_(std::move(table)), absent_(absent) {}

  /// All of its readings so far, in order.
  void SetReadings(std::vector<Reading> readings) { readings_ = std::move(readings); }
  /// After `commit`, which left the table in that state.
  void Note(const Commit& commit, const Digest& state);
  /// At the commit that ends at `end`, the newest that was noted.
  Kind At(base::Lsn end) const;

  /// The next reading, if its basis is at or before `upto`.
  const Reading* Due(base::Lsn upto) const;
  /// From where on the table stands still before the reading that is due.
  base::Lsn StillFrom() const;
  /// The last tx of the reading before it, or 0.
  int64_t PreviousTx() const;
  /// Ends the reading that is due: its first tx shows `shown`. What is wrong with that, or nothing.
  std::string Settle(const Digest& shown);

  /// Whether it waits for a reading that has not come.
  bool open() const { return Rewritten(); }
  bool absent() const { return absent_; }
  /// Where its first reading was shown, if it came later.
  base::Lsn begins() const { return begins_; }
  /// The positions, both included, between which versions may begin and end in any way.
  const std::vector<std::pair<base::Lsn, base::Lsn>>& spans() const { return spans_; }

 private:
  struct Mark {
    base::Lsn end;
    bool rewrite = false;
    bool told = false;  // its types are others than before
  };
  struct State {
    base::Lsn end;
    Digest digest;
  };
  bool Rewritten() const;

  std::string table_;
  bool absent_;
  base::Lsn begins_;
  std::vector<Reading> readings_;
  size_t next_ = 0;
  std::vector<Mark> marks_;  // that no reading has shown yet
  std::vector<State> states_;
  std::string types_;
  std::optional<base::Lsn> open_since_;
  std::vector<std::pair<base::Lsn, base::Lsn>> spans_;
};

}  // namespace tidemark::oracle
