#include "source/postgres/slot.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/identifier.h"
#include "base/log.h"

namespace tidemark::source {

using base::Deadline;
using base::Error;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kBlockersEvery{1000};
constexpr milliseconds kLeaveNothingLimit{20'000};
constexpr milliseconds kLongestWait = std::chrono::hours(24 * 7);
constexpr int kFirstVersionWithOptionList = 150000;
constexpr int kFirstVersionWithFailover = 170000;

std::string CreateCommand(int server_version, bool standby, const SlotRequest& request) {
  std::string options = "EXPORT_SNAPSHOT";
  if (server_version >= kFirstVersionWithOptionList) {
    // A standby does not hand its slots on, and a temporary one is not worth it.
    const bool failover =
        server_version >= kFirstVersionWithFailover && !standby && !request.temporary;
    options = failover ? "(SNAPSHOT 'export', FAILOVER true)" : "(SNAPSHOT 'export')";
  }
  return fmt::format("CREATE_REPLICATION_SLOT {} {}LOGICAL pgoutput {}",
                     base::QuoteIdentifier(request.name), request.temporary ? "TEMPORARY " : "",
                     options);
}

// The one command that blocks, on its own thread, so that the caller's may look who is in the way.
class Creation {
 public:
  Creation(pg::Connection& replication, std::string command)
      : worker_([this, &replication, text = std::move(command)] { Run(replication, text); }) {}

  /// True once the command has ended, well or badly.
  bool EndedWithin(milliseconds span) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, span, [this] { return done_; });
  }

  CreatedSlot Take() {
    worker_.join();
    if (error_) throw *error_;
    return std::move(*created_);
  }

 private:
  void Run(pg::Connection& replication, const std::string& command) {
    std::optional<CreatedSlot> created;
    std::optional<Error> error;
    try {
      // Columns: slot_name, consistent_point, snapshot_name, output_plugin.
      const auto row = replication.Execute(command);
      created = CreatedSlot{base::Lsn::Parse(row.text(0, 1)), row.str(0, 2)};
    } catch (const Error& thrown) {
      error = thrown;
    }
    const std::lock_guard lock(mutex_);
    created_ = std::move(created);
    error_ = std::move(error);
    done_ = true;
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::optional<CreatedSlot> created_;
  std::optional<Error> error_;
  std::jthread worker_;  // last: uses the members above
};

constexpr const char* kEndWalsender = R"sql(
SELECT pg_catalog.pg_terminate_backend($1::int, 10000)
)sql";

// A cancelled creation removes its slot itself, but the cancel may come too late, and a walsender
// whose client has gone may wait on: end the walsender first, then drop what it left.
void LeaveNothing(pg::Connection& plain, int walsender_pid, const SlotRequest& request) {
  try {
    plain.SetLimits(kLeaveNothingLimit, {});
    plain.Execute(kEndWalsender, {std::to_string(walsender_pid)});
    DropSlot(plain, request.name, Deadline::After(kLeaveNothingLimit));
  } catch (const Error& error) {
    spdlog::warn(
        "could not clean up after slot \"{}\": {}; drop it by hand: "
        "SELECT pg_drop_replication_slot({})",
        request.name, error.message(), base::QuoteLiteral(request.name));
  }
}

Error GaveUp(const SlotRequest& request, const std::vector<SlotBlocker>& blockers) {
  Error error(base::kQueryCanceled,
              fmt::format("could not create replication slot \"{}\" in time", request.name));
  if (blockers.empty()) return error;
  std::move(error).Detail(fmt::format("It was {}.", blockers.front().Describe()));
  if (blockers.front().at_primary) {
    return std::move(error).Hint(
        "Run SELECT pg_log_standby_snapshot() on the primary, or allow more time; nothing was left "
        "behind on the source.");
  }
  return std::move(error).Hint(
      "End that transaction, or allow more time; nothing was left behind on the source.");
}

}  // namespace

CreatedSlot CreateSlot(pg::Connection& replication, pg::Connection& plain,
                       const SlotRequest& request) {
  if (InspectSlot(plain, request.name)) {
    throw Error(base::kDuplicateObject,
                fmt::format("replication slot \"{}\" already exists", request.name));
  }
  const int walsender_pid = replication.server_pid();
  replication.SetLimits(request.deadline.left(kLongestWait), request.stop);
  std::vector<SlotBlocker> blockers;
  const bool standby = plain.Value("SELECT pg_catalog.pg_is_in_recovery()") == "t";
  Creation creation(replication, CreateCommand(replication.server_version(), standby, request));
  while (!creation.EndedWithin(kBlockersEvery)) {
    try {
      auto seen = WhoBlocksSlot(plain, walsender_pid);
      if (standby && seen.empty()) seen.push_back({.at_primary = true});
      if (request.on_wait && !seen.empty()) request.on_wait(seen);
      if (!seen.empty()) blockers = std::move(seen);
    } catch (const Error& error) {
      // Only the explanation is lost; the creation goes on.
      spdlog::debug("could not see what slot \"{}\" waits for: {}", request.name, error.what());
    }
  }
  try {
    return creation.Take();
  } catch (const Error& error) {
    const bool interrupted = error.state() == base::kQueryCanceled || error.IsConnectionLoss();
    if (!interrupted) throw;
    LeaveNothing(plain, walsender_pid, request);
    if (error.state() == base::kQueryCanceled) throw GaveUp(request, blockers);
    throw;
  }
}

std::string SlotBlocker::Describe() const {
  if (at_primary) {
    return "waiting until the primary logs which transactions run there, as it does now and then "
           "(at once by SELECT pg_log_standby_snapshot() on the primary)";
  }
  std::string text = pid != 0 ? fmt::format("waiting for transaction of pid {}", pid)
                              : fmt::format("waiting for prepared transaction \"{}\"", transaction);
  if (!since.empty()) text += fmt::format(", open since {}", since);
  if (!user.empty()) {
    text += application.empty() ? fmt::format(" (user {})", user)
                                : fmt::format(" (user {}, application {})", user, application);
  }
  return text;
}

namespace {

constexpr const char* kBlockers = R"sql(
SELECT holder.pid, coalesce(p.gid, holder.transactionid::text), coalesce(a.usename, p.owner),
       a.application_name, coalesce(a.xact_start, p.prepared)::timestamptz(0)
FROM pg_catalog.pg_locks waiter
JOIN pg_catalog.pg_locks holder
  ON holder.locktype = 'transactionid' AND holder.granted
 AND holder.transactionid = waiter.transactionid
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = holder.pid
LEFT JOIN pg_catalog.pg_prepared_xacts p
  ON holder.pid IS NULL AND p.transaction = holder.transactionid
WHERE waiter.pid = $1::int AND waiter.locktype = 'transactionid' AND NOT waiter.granted
)sql";

}  // namespace

std::vector<SlotBlocker> WhoBlocksSlot(pg::Connection& plain, int walsender_pid) {
  const auto rows = plain.Execute(kBlockers, {std::to_string(walsender_pid)});
  std::vector<SlotBlocker> blockers;
  for (int i = 0; i < rows.rows(); ++i) {
    blockers.push_back({.pid = rows.is_null(i, 0) ? 0 : static_cast<int>(rows.int64(i, 0)),
                        .transaction = rows.str(i, 1),
                        .user = rows.str(i, 2),
                        .application = rows.str(i, 3),
                        .since = rows.str(i, 4)});
  }
  return blockers;
}

namespace {

constexpr const char* kSlot = R"sql(
SELECT s.plugin, s.database, s.active_pid, s.restart_lsn, s.confirmed_flush_lsn, s.wal_status,
       s.two_phase, s.temporary,
       coalesce((pg_catalog.to_jsonb(s) ->> 'failover')::boolean, false)
FROM pg_catalog.pg_replication_slots s
WHERE s.slot_name = $1
)sql";

base::Lsn LsnOrNone(const pg::Result& row, int column) {
  return row.is_null(0, column) ? base::Lsn() : base::Lsn::Parse(row.text(0, column));
}

}  // namespace

std::optional<SlotState> InspectSlot(pg::Connection& plain, const std::string& name) {
  const auto row = plain.Execute(kSlot, {name});
  if (row.rows() == 0) return std::nullopt;
  SlotState slot;
  slot.plugin = row.str(0, 0);
  slot.database = row.str(0, 1);
  if (!row.is_null(0, 2)) slot.active_pid = static_cast<int>(row.int64(0, 2));
  slot.restart_lsn = LsnOrNone(row, 3);
  slot.confirmed_flush_lsn = LsnOrNone(row, 4);
  slot.wal_status = row.str(0, 5);
  slot.two_phase = row.boolean(0, 6);
  slot.temporary = row.boolean(0, 7);
  slot.failover = row.boolean(0, 8);
  return slot;
}

namespace {

constexpr const char* kDrop = R"sql(
SELECT pg_catalog.pg_drop_replication_slot(slot_name)
FROM pg_catalog.pg_replication_slots
WHERE slot_name = $1
)sql";

// The server tells nobody when a slot becomes free, so the wait is the server's, in short pieces
// that a stop request interrupts.
constexpr const char* kMoment = R"sql(
SELECT pg_catalog.pg_sleep(0.1)
)sql";

}  // namespace

void DropSlot(pg::Connection& plain, const std::string& name, Deadline deadline) {
  for (;;) {
    try {
      plain.Execute(kDrop, {name});
      return;
    } catch (const Error& error) {
      if (error.state() == base::kUndefinedObject) return;
      if (error.state() != base::kObjectInUse || deadline.passed()) throw;
    }
    plain.Execute(kMoment);
  }
}

}  // namespace tidemark::source
