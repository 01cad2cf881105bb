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
      if (Deadline::Clock::now() - began > kRetryMost) pause = kRetryFirst;
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
  const auto resume = temporal::LoadResume(store, journal.id);
  Follow(store, lease, EnsureJournal(store, options_),
         *resume, *progress_, stop);
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
  copy.Run(report, stop);
}

void MirrorJob::Follow(pg::Connection& store, const temporal::Lease& lease,
                       const Journal& journal, const temporal::Resume& resume,
                       Progress& progress, std::stop_token stop) {
  auto source = OpenSameSource(options_, journal, stop);
  DropDeadTableSyncs(store, journal.id);
  auto from = resume;
  from.received = PrepareSlot(source, store, options_, journal, resume, stop);
  auto followed = LoadFollowedTables(store, source, journal.id);

  source::ChangeStream stream({.dsn = options_.source_dsn,
                               .slot = journal.slot,
                               .publication = journal.publication,
                               .start = from.received},
                              stop);
  progress.SetState(CaptureState::kStreaming);
  if (!one_by_one_until_.valid()) progress.SetFailure(std::nullopt);
  const Upkeep upkeep(options_.source_dsn, options_.store_dsn, journal.slot, progress);
  MirrorStream mirror(store, lease, journal, from, std::move(followed), progress, options_,
                      {.one_by_one_until = one_by_one_until_, .history = options_.history});
  spdlog::info("following {} from {}", options_.name, resume.lsn.ToString());
  try {
    mirror.Run(stream, stop);
  } catch (const Error& error) {
    // Find the commit that cannot be applied: next time, one commit at a time up to here.
    if (!stop.stop_requested() && !error.IsTransient()) {
      one_by_one_until_ = std::max(one_by_one_until_, mirror.newest_received());
    }
    throw;
  }
}

}  // namespace tidemark::capture
