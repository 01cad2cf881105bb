// The last step of a capture: basis, tx rows, members and resume position, written in the
// transaction that wrote the rows, then its commit. Before it nothing is visible, after it all is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lsn.h"
#include "pg/connection.h"
#include "temporal/lease.h"

namespace tidemark::temporal {

/// One upstream commit.
struct UpstreamCommit {
  int64_t tx;
  base::Lsn end_lsn;
  uint32_t xid;
  base::Timestamp source_time;               // non-decreasing within the journal
  std::optional<base::Timestamp> commit_time;  // the upstream's own, where it differs
  std::string origin;                        // empty if local to the source
};

/// What changed in one dataset.
struct Member {
  int dataset;
  int64_t puts, deletions, rows_added;
};

struct NewBasis {
  int journal;
  std::optional<int64_t> capture;
  std::vector<UpstreamCommit> commits;  // in order; at least one
  std::vector<Member> members;
  base::Lsn received;                   // at least the last commit's end
  base::Timestamp received_time;
  base::Timestamp extracted_from, extracted_to;
};

struct Basis {
  int64_t number;
  std::string system_time;
};

/// Where a journal stands in the store.
struct Resume {
  base::Lsn lsn, received;
  base::Timestamp received_time;
  int64_t tx_last;
  int64_t basis;
};

/// Writes the basis into `tx` and commits it. Throws 55000 when the lease was taken over,
/// 08007 when the outcome is unknown: then LoadResume on a new connection tells.
Basis Publish(pg::Transaction tx, const Lease& lease, const NewBasis& basis_to_be);

/// The rows of tidemark.tx, in the caller's transaction: Publish does it by itself.
void StoreCommits(pg::Connection& store, int journal, const std::vector<UpstreamCommit>& commits);
/// The members as the text of a tidemark.member[].
std::string MembersText(const std::vector<Member>& members, base::Timestamp extracted_from,
                        base::Timestamp extracted_to);

/// Nothing up to `received` is missing: an idle stream's keep-alive.
void StoreReceived(pg::Connection& store, const Lease& lease, int journal, base::Lsn received,
                   base::Timestamp received_time);

/// nullopt before the first publish of the journal.
std::optional<Resume> LoadResume(pg::Connection& store, int journal);

/// After a publish that was cut short, the newest allotted system time may lie beyond every basis;
/// brings it back. Call when the lease has been taken.
void ResetPublishedTime(pg::Connection& store);

}  // namespace tidemark::temporal
