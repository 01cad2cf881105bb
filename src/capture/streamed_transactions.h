// Transactions that the source sends while they are still running, in blocks among complete ones:
// what they change waits here until they commit, and is then read once, in order, as if it had been
// sent at their commit. What was rolled back, whole or to a savepoint, is dropped. Little memory
// each, whatever they change (spool.h). One thread.
//
//   StreamStart ──► block: Take … ──► StreamStop ──► … ──► Commit ──► Changes::Next …
//                                                     └──► Abort: a savepoint's part, or all
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "capture/spool.h"
#include "wire/pgoutput.h"

namespace tidemark::capture {

class StreamedTransactions {
 public:
  using Xid = wire::pgoutput::Xid;

  /// One that has committed.
  class Changes {
   public:
    struct Change {
      std::string_view payload;  // as outside a block; valid until the next call
      /// Made by a subtransaction that was rolled back: only what a Relation message says counts.
      /// The source may rely on it later.
      bool rolled_back;
    };
    /// In the order in which they were made; nullopt at the end.
    std::optional<Change> Next();

   private:
    friend class StreamedTransactions;
    Spool spool_;  // messages bear the subtransaction
    std::set<Xid> rolled_back_;
  };

  void Start(Xid xid);
  void Stop();
  bool in_block() const { return block_ != nullptr; }
  /// Takes the message in if it is one of a block; false if it is to be decoded: between blocks,
  /// and the end of one. Throws 08P01 when it is too short, 58030 when it cannot be kept.
  bool Take(std::string_view payload);

  /// The subtransaction's changes go; all of them when it is `xid` itself. Others than known ones
  /// are passed over: PostgreSQL 18 sends such.
  void Abort(Xid xid, Xid subtransaction);
  /// Its changes; nothing when it sent none.
  std::unique_ptr<Changes> Commit(Xid xid);

  size_t running() const { return running_.size(); }

 private:
  std::unordered_map<Xid, std::unique_ptr<Changes>> running_;
  Changes* block_ = nullptr;
};

}  // namespace tidemark::capture
