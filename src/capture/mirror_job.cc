#include "capture/mirror_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "capture/first_copy.h"
#include "capture/source_connection.h"
#include "capture/upkeep.h"
#include "pg/wait.h"
#include "source/postgres/preflight.h"
#include "source/postgres/publication.h"
#include "source/postgres/slot.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kApplyMax{24};
constexpr std::chrono::milliseconds kRetryFirst{200};
constexpr std::chrono::milliseconds kRetryMost{5000};

Complaint ComplaintOf(const Error& error) {
  std::string detail = error.detail();
  for (const auto& line : error.context()) detail += (detail.empty() ? "" : " ") + line;
  return {error.state().str(), error.message(), detail, error.hint(), "", false};
}

std::vector<Complaint> Standing(const source::PreflightReport& report) {
  std::vector<Complaint> complaints;
  for (const auto& problem : report.problems) {
    complaints.push_back({problem.state.str(), problem.what, "", problem.fix, problem.table,
                          problem.severity == source::Severity::kNote});
  }
  return complaints;
}

}  // namespace

std::string SlotNameFor(const std::string& mirror) {
  std::string name = "tidemark_";
  for (const char c : mirror) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    name += plain ? lower : '_';
  }
  if (name.size() > 63) name.resize(63);
  return name;
}

MirrorJob::MirrorJob(MirrorOptions options) : options_(std::move(options)) {
  if (options_.slot.empty()) options_.slot = SlotNameFor(options_.name);
  if (options_.copy_workers <= 0) {
    options_.copy_workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
  }
}

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
  const auto journal =
      EnsureJournal(store, options_.name, options_.publication, options_.slot);
  if (!progress_) progress_ = std::make_unique<Progress>(options_.store_dsn, journal.id);
  store.SetLimits(kApplyMax, stop);
  if (!temporal::LoadResume(store, journal.id)) {
    FirstCopyOf(store, lease, journal, *progress_, stop);
  }
  const auto resume = temporal::LoadResume(store, journal.id);
  Follow(store, lease, EnsureJournal(store, options_.name, options_.publication, options_.slot),
         *resume, *progress_, stop);
}

void MirrorJob::FirstCopyOf(pg::Connection& store, const temporal::Lease& lease,
                            const Journal& journal, Progress& progress, std::stop_token stop) {
  FirstCopy copy({.source_dsn = options_.source_dsn,
                  .store_dsn = options_.store_dsn,
                  .workers = options_.copy_workers},
                 store, lease, journal, progress);
  try {
    copy.CleanUp(stop);
  } catch (const Error& error) {
    refused_ = error.state() == base::kDuplicateObject;
    throw;
  }
  auto source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), stop);
  source::PreflightReport report;
  {
    auto replication = OpenReplication(options_.source_dsn, Deadline::After(kConnectMax), stop);
    report = source::Preflight(source, {.publication = options_.publication,
                                        .slot = options_.slot,
                                        .may_create_publication = options_.may_create_publication,
                                        .store = &store,
                                        .replication = &replication});
  }
  progress.SetStanding(Standing(report));
  for (const auto& problem : report.problems) {
    if (problem.severity == source::Severity::kRefusesAll) {
      refused_ = true;
      throw Error(problem.state, problem.what).Hint(problem.fix);
    }
  }
  if (!report.publication.exists) {
    std::vector<pg::Relation> relations;
    for (const auto& table : report.tables) relations.push_back(table.relation);
    source::CreatePublication(source, options_.publication, relations);
    spdlog::info("created publication {} with {} tables", options_.publication, relations.size());
  }
  StoreSourceIdentity(store, journal, report.server);
  copy.Run(report, stop);
}

// Whether the source is still the one whose log the resume position counts in.
void MirrorJob::CompareSource(pg::Connection& source, const Journal& journal,
                              const temporal::Resume& resume) {
  const auto slot = source::InspectSlot(source, journal.slot);
  const char* const kMend = "Mirror the source anew into a new data directory.";
  if (!slot) {
    throw Error(base::kUndefinedObject,
                fmt::format("replication slot \"{}\" does not exist any more", journal.slot))
        .Detail("Changes since the newest published commit cannot be fetched.")
        .Hint(kMend);
  }
  if (slot->lost()) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("replication slot \"{}\" has lost write-ahead log that the mirror "
                            "still needs",
                            journal.slot))
        .Hint(kMend);
  }
  if (slot->confirmed_flush_lsn > resume.received) {
    throw Error(base::kNotInPrerequisiteState,
                fmt::format("replication slot \"{}\" was advanced to {} by somebody else, but the "
                            "store has received only up to {}",
                            journal.slot, slot->confirmed_flush_lsn.ToString(),
                            resume.received.ToString()))
        .Hint(kMend);
  }
}

void MirrorJob::Follow(pg::Connection& store, const temporal::Lease& lease,
                       const Journal& journal, const temporal::Resume& resume,
                       Progress& progress, std::stop_token stop) {
  auto source = OpenSource(options_.source_dsn, Deadline::After(kConnectMax), stop);
  {
    auto replication = OpenReplication(options_.source_dsn, Deadline::After(kConnectMax), stop);
    const auto identity = replication.Execute("IDENTIFY_SYSTEM");
    if (identity.str(0, 0) != journal.system_identifier) {
      throw Error(base::kNotInPrerequisiteState,
                  fmt::format("the source is another server than the one that was mirrored: "
                              "system identifier {} instead of {}",
                              identity.text(0, 0), journal.system_identifier))
          .Hint("Point the mirror at its own source, or mirror the new one into a new data "
                "directory.");
    }
  }
  CompareSource(source, journal, resume);
  auto datasets = temporal::LoadDatasets(store, journal.id);
  std::vector<pg::Oid> type_oids;
  for (const auto& dataset : datasets) {
    for (const auto& column : dataset.columns) type_oids.push_back(column.source_type);
  }
  const auto types = temporal::EnsureTypes(store, pg::LoadTypes(source, type_oids));
  for (auto& dataset : datasets) {
    for (auto& column : dataset.columns) column.binary = types.At(column.source_type).binary;
  }

  source::ChangeStream stream({.dsn = options_.source_dsn,
                               .slot = journal.slot,
                               .publication = journal.publication,
                               .start = resume.received},
                              stop);
  progress.SetState(CaptureState::kStreaming);
  if (!one_by_one_until_.valid()) progress.SetFailure(std::nullopt);
  const Upkeep upkeep(options_.source_dsn, options_.store_dsn, journal.slot, progress);
  MirrorStream mirror(store, lease, journal, resume, std::move(datasets), types, progress,
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
