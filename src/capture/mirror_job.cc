#include "capture/mirror_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "capture/first_copy.h"
#include "capture/mirror_source.h"
#include "capture/table_sync.h"
#include "capture/upkeep.h"
#include "pg/wait.h"
#include "temporal/nullability.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kApplyMax{24};
constexpr std::chrono::milliseconds kRetryFirst{200};
constexpr std::chrono::milliseconds kRetryMost{5000};

}  // namespace

MirrorJob::MirrorJob(MirrorOptions options) : options_(Completed(std::move(options))) {}

void MirrorJob::Run(std::stop_token stop) {
  pg::Bell bell;
  auto pause = kRetryFirst;
  while (!stop.stop_requested()) {
    const auto began = Deadline::Clock::now();
    try {
      RunOnce(stop);
    } catch (const Error& error) {
      if (stop.stop_requested()) break;
      if (refused_) throw;
      const bool passing = error.IsTransient();
      spdlog::log(passing ? spdlog::level::warn : spdlog::level::err, "mirror {}: {}",
                  options_.name, error.Full());
      if (progress_) {
        progress_->SetState(passing ? CaptureState::kWaiting : CaptureState::kFailed);
        progress_->SetFailure(ComplaintOf(error));
      }
      // One that begins again in order to do otherwise has nothing to wait for.
      const bool at_once = error.state() == base::kSerializationFailure;
      if (at_once || Deadline::Clock::now() - began > kRetryMost) pause = kRetryFirst;
    }
    try {
      bell.Wait(-1, false, Deadline::After(pause), stop);
    } catch (const Error&) {
      break;  // stopped
    }
    pause = std::min(pause * 2, kRetryMost);
  }
  if (progress_) progress_->SetState(CaptureState::kStopped);
  progress_.reset();
}

void MirrorJob::RunOnce(std::stop_token stop) {
  auto store = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax), stop);
  try {
    temporal::Migrate(store);
  } catch (const Error& error) {
    refused_ = error.state() == base::kFeatureNotSupported;  // a store of another version
    throw;
  }
  const auto lease = temporal::Lease::Take(store, options_.name, stop);
  temporal::ResetPublishedTime(store);
  const auto journal = EnsureJournal(store, options_);
  if (!progress_) progress_ = std::make_unique<Progress>(options_.store_dsn, journal.id);
  store.SetLimits(kApplyMax, stop);
  if (!temporal::LoadResume(store, journal.id)) {
    FirstCopyOf(store, lease, journal, *progress_, stop);
  }
  Follow(store, lease, EnsureJournal(store, options_), *progress_, stop);
}

void MirrorJob::FirstCopyOf(pg::Connection& store, const temporal::Lease& lease,
                            const Journal& journal, Progress& progress, std::stop_token stop) {
  FirstCopy copy(options_, store, lease, journal, progress);
  try {
    copy.CleanUp(stop);
  } catch (const Error& error) {
    refused_ = error.state() == base::kDuplicateObject;
    throw;
  }
  const auto report = InspectSource(store, options_, progress, stop);
  if (const auto refusal = RefusalOf(report)) {
    refused_ = true;
    throw *refusal;
  }
  AdoptSource(store, options_, journal, report, stop);
  const Upkeep upkeep(options_, journal.slot, progress);  // a long copy holds back log, too
  copy.Run(report, stop);
}

void MirrorJob::Follow(pg::Connection& store, const temporal::Lease& lease,
                       const Journal& journal, Progress& progress, std::stop_token stop) {
  DropDeadTableSyncs(store, journal.id);
  auto met = MeetSource(store, options_, journal, stop);
  const temporal::Resume& from = met.resume;
  auto followed = LoadFollowedTables(store, met.connection, options_, journal.id);

  progress.SetState(CaptureState::kStreaming);
  if (!one_by_one_until_.valid()) progress.SetFailure(std::nullopt);
  const Upkeep upkeep(options_, journal.slot, progress);
  spdlog::info("following {} from {}", options_.name, from.lsn.ToString());
  bool by_source = false;
  try {
    source::ChangeStream stream({.dsn = options_.source_dsn,
                                 .slot = journal.slot,
                                 .publication = journal.publication,
                                 .start = from.received,
                                 .binary = !options_.unknown_as_text},
                                stop);
    MirrorStream mirror(store, lease, journal, from, std::move(followed), progress, options_,
                        {.one_by_one_until = one_by_one_until_,
                         .publish_before = publish_before_,
                         .history = options_.history});
    try {
      mirror.Run(stream, stop);
    } catch (const Error& error) {
      by_source = stream.Failed();
      MindFailure(mirror, error, stop);
      throw;
    }
  } catch (const Error& error) {
    if (by_source && !stop.stop_requested()) {
      MindPublication(store, options_, journal, error, stop);
    }
    throw;
  }
}

// What the next run has to know of the error that ended this one. Throws another one where that
// says better what comes next.
void MirrorJob::MindFailure(const MirrorStream& mirror, const Error& error, std::stop_token stop) {
  publish_before_ = mirror.publish_first();
  if (stop.stop_requested() || error.IsTransient()) return;
  const auto* table = mirror.at_work();
  if (table != nullptr && TakeNulls(*table, error, stop)) {
    throw Error(base::kSerializationFailure,
                fmt::format("{} takes NULLs now: again", table->name.Display()));
  }
  // Find the commit that cannot be applied: next time, one commit at a time up to here.
  const bool alone = mirror.newest_received() <= one_by_one_until_;
  one_by_one_until_ = std::max(one_by_one_until_, mirror.newest_received());
  if (table == nullptr) return;
  if (!options_.isolate_failed_tables && !MetRewrittenRows(options_, *table, error, stop)) return;
  if (alone) BeginWithout(*table, error, stop);  // all that came before is published
  throw Error(base::kSerializationFailure,
              fmt::format("a change of {} was refused: again, one commit at a time: {}",
                          table->name.Display(), error.message()));
}

// The source has dropped a NOT NULL, which the stream does not tell, and may have it again by now.
// The next look at the source gives back what it has.
bool MirrorJob::TakeNulls(const temporal::Dataset& table, const Error& error,
                          std::stop_token stop) {
  if (error.state() != base::kNotNullViolation) return false;
  auto side = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax), stop);
  std::vector<std::string> columns;
  for (const auto& column : table.columns) columns.push_back(column.name);
  pg::Transaction tx(side);
  const bool changed = temporal::AllowNulls(side, table, columns);
  std::move(tx).Commit();
  return changed;
}

// While the others go on.
void MirrorJob::BeginWithout(const temporal::Dataset& table, const Error& error,
                             std::stop_token stop) {
  SetAside(options_, table, error, stop);
  one_by_one_until_ = {};
  throw Error(base::kSerializationFailure,
              fmt::format("{} is to be read whole again: {}", table.name.Display(),
                          error.message()));
}

}  // namespace tidemark::capture
