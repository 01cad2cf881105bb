#include "capture/mirror_drain.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "capture/first_copy.h"
#include "capture/mirror_source.h"
#include "capture/mirror_stream.h"
#include "capture/table_sync.h"
#include "pg/wait.h"
#include "source/postgres/change_stream.h"
#include "source/postgres/read_position.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

// A live follower of the same mirror does not let go; a capture that is ending does.
constexpr std::chrono::seconds kLeaseMax{10};
constexpr std::chrono::milliseconds kPause{300};
constexpr int kTries = 4;

}  // namespace

struct MirrorDrain::Copying {
  FirstCopy copy;
  temporal::CapturedJournal published;
};

// One try of a drain: the stream begins where the store stands, so that another may follow.
struct MirrorDrain::Draining {
  Draining(pg::Connection& store, const temporal::Lease& lease, const Journal& journal,
           const temporal::Resume& resume, FollowedTables followed, const MirrorOptions& options,
           std::stop_token stop)
      : progress(options.store_dsn, journal.id),
        stream({.dsn = options.source_dsn,
                .slot = journal.slot,
                .publication = journal.publication,
                .start = resume.received,
                .binary = !options.unknown_as_text},
               std::move(stop)),
        mirror(store, lease, journal, resume, std::move(followed), progress, options,
               {.one_by_one_until = {}, .history = options.history}) {}

  Progress progress;
  source::ChangeStream stream;
  MirrorStream mirror;
};

MirrorDrain::MirrorDrain(pg::Connection& store, const MirrorOptions& options)
    : store_(&store), options_(Completed(options)) {}

MirrorDrain::~MirrorDrain() = default;

int MirrorDrain::Register() {
  journal_ = EnsureJournal(*store_, options_);
  return journal_.id;
}

void MirrorDrain::Read(Progress& progress, const RowsRead&, std::stop_token stop) {
  if (!lease_) {
    lease_ = temporal::Lease::TakeBefore(*store_, options_.name, Deadline::After(kLeaseMax), stop);
  }
  if (temporal::LoadResume(*store_, journal_.id)) {
    DropDeadTableSyncs(*store_, journal_.id);
    MeetSource(*store_, options_, journal_, stop);
    journal_ = EnsureJournal(*store_, options_);  // as the source was met
    return;
  }
  CopyFirst(progress, stop);
}

void MirrorDrain::CopyFirst(Progress& progress, std::stop_token stop) {
  copying_.reset(new Copying{
      .copy = FirstCopy(options_, *store_, *lease_, journal_, progress), .published = {}});
  FirstCopy& copy = copying_->copy;
  copy.CleanUp(stop);
  const auto report = InspectSource(*store_, options_, progress, stop);
  if (const auto refusal = RefusalOf(report)) throw *refusal;
  AdoptSource(*store_, options_, journal_, report, stop);
  copy.Copy(report, stop);
}

void MirrorDrain::Apply(temporal::CaptureContents& contents, std::stop_token stop) {
  if (copying_) {
    copying_->published = copying_->copy.Attach();
    contents.journals.push_back(copying_->published);
    return;
  }
  for (int tried = 1;; ++tried) {
    draining_.reset();  // the slot serves one stream
    store_->Execute("SAVEPOINT tidemark_drain");
    try {
      auto met = MeetSource(*store_, options_, journal_, stop);
      const auto target = source::CurrentEnd(met.connection);
      draining_ = std::make_unique<Draining>(
          *store_, *lease_, journal_, met.resume,
          LoadFollowedTables(*store_, met.connection, options_, journal_.id), options_, stop);
      draining_->progress.SetState(CaptureState::kStreaming);
      contents.journals.push_back(draining_->mirror.Drain(draining_->stream, target, stop));
      store_->Execute("RELEASE SAVEPOINT tidemark_drain");
      base::KillPoint("drain.applied");
      return;
    } catch (const Error& error) {
      if (stop.stop_requested() || !store_->IsOpen()) throw;
      const auto* table = draining_ ? draining_->mirror.at_work() : nullptr;
      if (!error.IsTransient() && GoWithout(table, error, stop)) {
        // In a transaction of the store's that is new: where it is a neighbour of the source, the
        // slot of the reading would wait for this one.
        throw Error(base::kSerializationFailure,
                    fmt::format("a change of {} was refused: {}", table->name.Display(),
                                error.message()));
      }
      if (!error.IsTransient() || tried == kTries) throw;
      spdlog::info("mirror {}: {}; draining again", options_.name, error.what());
      store_->Execute("ROLLBACK TO SAVEPOINT tidemark_drain");
    }
    pg::Bell bell;
    bell.Wait(-1, false, Deadline::After(kPause * tried), stop);
  }
}

// The store refuses what the source has done to one table. Whether the next transaction may do
// without it: its changes wait then, and it is read whole.
bool MirrorDrain::GoWithout(const temporal::Dataset* table, const Error& error,
                            std::stop_token stop) {
  if (table == nullptr) return false;
  if (!options_.isolate_failed_tables && !MetRewrittenRows(options_, *table, error, stop)) {
    return false;
  }
  SetAside(options_, *table, error, std::move(stop));
  return true;
}

MemberTotals MirrorDrain::Settle(const temporal::CaptureContents& contents) {
  MemberTotals totals;
  for (const auto& journal : contents.journals) {
    if (journal.journal != journal_.id) continue;
    totals.changed = !journal.members.empty();
    for (const auto& member : journal.members) {
      totals.puts += member.puts;
      totals.deletions += member.deletions;
    }
  }
  totals.live_rows = std::stoll(store_->Value(
      R"sql(
SELECT coalesce(sum(v.live_rows), 0)
FROM tidemark.version v JOIN tidemark.dataset d ON d.id = v.dataset WHERE d.journal = $1
)sql",
      {std::to_string(journal_.id)}));
  if (draining_) {
    draining_->progress.SetState(CaptureState::kStopped);
    draining_->mirror.Settle(draining_->stream);
  }
  return totals;
}

void MirrorDrain::CleanUp(bool published) {
  draining_.reset();
  if (copying_ && !published) copying_->copy.Undo("the capture was not published");
  copying_.reset();
}

}  // namespace tidemark::capture
