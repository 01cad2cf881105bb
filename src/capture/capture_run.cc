#include "capture/capture_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/kill_point.h"
#include "base/log.h"
#include "capture/capture_journal.h"
#include "capture/dataset_capture.h"
#include "capture/journal.h"
#include "capture/mirror_drain.h"
#include "capture/mirror_source.h"
#include "capture/progress.h"
#include "pg/wait.h"
#include "temporal/capture_publish.h"
#include "temporal/lease.h"
#include "temporal/sealing.h"
#include "temporal/snapshot_horizon.h"
#include "temporal/statistics.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{30};
constexpr std::chrono::hours kStatementMax{24 * 7};
constexpr std::chrono::seconds kUndoMax{60};
constexpr std::chrono::milliseconds kPause{300};
constexpr int kTries = 4;

void Pause(int tried, std::stop_token stop) {
  pg::Bell bell;
  bell.Wait(-1, false, Deadline::After(kPause * tried), stop);
}

// One try, with a lease and a store connection of its own.
class Run {
 public:
  Run(const CaptureOptions& options, std::stop_token stop)
      : options_(options),
        stop_(stop),
        store_(temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop)) {}

  CaptureReport Do();

 private:
  struct Member {
    const PlannedDataset* planned;
    std::unique_ptr<CaptureMember> capture;
    int journal = 0;  // once it is registered
    MemberReport report;
    bool good() const { return report.outcome != MemberOutcome::kFailed; }
  };

  std::unique_ptr<CaptureMember> MemberOf(const PlannedDataset& planned);
  void ReadAll(const temporal::Lease& lease);
  void Read(Member& member);
  void Fail(Member& member, const Error& error);
  bool AnyFailed() const;
  bool AnyGood() const;
  void ApplyAndPublish(const temporal::Lease& lease);
  bool TryPublish(const temporal::Lease& lease);
  void Abandon(const temporal::Lease& lease, const std::string& reason);
  void Settle();

  const CaptureOptions& options_;
  std::stop_token stop_;
  pg::Connection store_;
  int64_t capture_ = 0;
  std::vector<Member> members_;
  temporal::CaptureContents contents_;
  std::optional<temporal::Basis> basis_;
};

bool Run::AnyFailed() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& m) { return !m.good(); });
}

bool Run::AnyGood() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& m) { return m.good(); });
}

void Run::Fail(Member& member, const Error& error) {
  spdlog::warn("dataset {}: {}", member.planned->name, error.Full());
  member.report.outcome = MemberOutcome::kFailed;
  member.report.error = error;
  if (member.journal != 0) {
    Progress progress(options_.store_dsn, member.journal);
    progress.SetState(CaptureState::kFailed);
    progress.SetFailure(ComplaintOf(error));
  }
  member.report.error->AddContext(fmt::format("capturing dataset \"{}\"", member.planned->name));
}

void Run::Read(Member& member) {
  CaptureMember& capture = *member.capture;
  std::optional<Progress> progress;
  for (int tried = 1;; ++tried) {
    try {
      member.journal = capture.Register();
      if (!progress) progress.emplace(options_.store_dsn, member.journal);
      progress->RestartCopy();
      progress->SetState(CaptureState::kCopying);
      capture.Read(
          *progress,
          [&](int64_t rows) {
            if (options_.progressed) options_.progressed(*member.planned, rows);
          },
          stop_);
      progress->SetState(CaptureState::kStopped);
      return;
    } catch (const Error& error) {
      // Only the source's line may be lost: without the store's there is no lease either.
      if (stop_.stop_requested() || !store_.IsOpen()) throw;
      const bool again = error.state().error_class() == "08" && tried < kTries;
      capture.CleanUp(false);
      if (!again) {
        progress.reset();
        return Fail(member, error);
      }
      spdlog::info("dataset {}: {}; trying again", member.planned->name, error.what());
    }
    Pause(tried, stop_);
  }
}

std::unique_ptr<CaptureMember> Run::MemberOf(const PlannedDataset& planned) {
  if (planned.mirror) {
    auto mirror = *planned.mirror;
    mirror.store_dsn = options_.store_dsn;
    mirror.history = options_.history;
    return std::make_unique<MirrorDrain>(store_, mirror);
  }
  return std::make_unique<DatasetCapture>(store_, options_.store_dsn, capture_, planned,
                                          options_.history);
}

void Run::ReadAll(const temporal::Lease& lease) {
  capture_ = BeginDatasetsCapture(store_, lease);
  for (const auto& planned : options_.datasets) {
    Member member{.planned = &planned,
                  .capture = MemberOf(planned),
                  .journal = 0,
                  .report = {.name = planned.name, .version = "", .error = {}}};
    members_.push_back(std::move(member));
  }
  for (auto& member : members_) {
    Read(member);
    if (!member.good() && !options_.keep_going) return;
    base::KillPoint("capture.member_read");
  }
}

// False: the transaction met another and is to be tried again.
bool Run::TryPublish(const temporal::Lease& lease) {
  contents_ = {};
  std::vector<Member*> order;
  for (auto& member : members_) {
    if (member.good()) order.push_back(&member);
  }
  std::ranges::stable_sort(order, {}, [](const Member* member) { return member->capture->order(); });
  pg::Transaction tx(store_);
  for (Member* member : order) {
    store_.Execute("SAVEPOINT tidemark_member");
    try {
      member->capture->Apply(contents_, stop_);
    } catch (const Error& error) {
      if (stop_.stop_requested() || !store_.IsOpen()) throw;
      if (error.state().error_class() == "40") return false;
      store_.Execute("ROLLBACK TO SAVEPOINT tidemark_member");
      Fail(*member, error);
      if (!options_.keep_going) return true;
      continue;
    }
    store_.Execute("RELEASE SAVEPOINT tidemark_member");
    base::KillPoint("capture.member_done");
  }
  if (contents_.empty()) return true;
  for (const auto& member : members_) {
    if (!member.good()) StoreFailure(store_, capture_, member.planned->name, *member.report.error);
  }
  EndCapture(store_, capture_, "published", "");
  for (const auto& journal : contents_.journals) {
    if (journal.capture) EndCapture(store_, *journal.capture, "published", "");
  }
  try {
    basis_ = temporal::PublishCapture(std::move(tx), lease, capture_, contents_);
  } catch (const Error& error) {
    if (error.state() != base::kCommitOutcomeUnknown) throw;
    auto store = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax), stop_);
    basis_ = temporal::FindCaptureBasis(store, capture_);
    if (!basis_) throw Error(base::kConnectionFailure, "the store was lost before the publish");
    store_ = std::move(store);
  }
  return true;
}

void Run::ApplyAndPublish(const temporal::Lease& lease) {
  for (int tried = 1; !TryPublish(lease); ++tried) {
    if (tried == kTries) {
      throw Error(base::kSerializationFailure, "the capture kept meeting other transactions");
    }
    Pause(tried, stop_);
  }
}

// Nothing is published: the stages go, what failed is kept. On a line of its own, since a stop may
// have cut the other one short in mid-statement.
void Run::Abandon(const temporal::Lease& lease, const std::string& reason) {
  auto store = temporal::OpenStore(options_.store_dsn, Deadline::After(kConnectMax));
  store.SetLimits(kUndoMax, {});
  for (const auto& member : members_) {
    if (!member.good()) StoreFailure(store, capture_, member.planned->name, *member.report.error);
  }
  EndCapture(store, capture_, "abandoned", reason);
  // Whoever has taken over clears what is left, and may be at work on the same datasets.
  if (StillHeld(store, lease)) ClearDeadCaptures(store, lease);
}

// After the publish: nothing here may fail the capture any more.
void Run::Settle() {
  for (auto& member : members_) {
    if (!member.good()) continue;
    // It is published, whatever may be left undone below.
    member.report.outcome = MemberOutcome::kPublished;
    try {
      const auto totals = member.capture->Settle(contents_);
      if (!totals.changed) member.report.outcome = MemberOutcome::kUnchanged;
      member.report.puts = totals.puts;
      member.report.deletions = totals.deletions;
      member.report.live_rows = totals.live_rows;
      member.report.version = totals.version;
    } catch (const Error& error) {
      spdlog::warn("the next capture will tidy up after this one: {}", error.what());
    }
  }
  try {
    for (auto& member : members_) member.capture->CleanUp(member.good());
    temporal::RefreshStatistics(store_);
    temporal::Sealer sealer(options_.history);
    while (!stop_.stop_requested() && sealer.SealOne(store_)) {
    }
    temporal::SnapshotHorizon().Advance(store_);
  } catch (const Error& error) {
    spdlog::warn("the next capture will tidy up after this one: {}", error.what());
  }
}

CaptureReport Run::Do() {
  temporal::Migrate(store_);
  const auto lease = temporal::Lease::Take(store_, kDatasetsLease, stop_);
  store_.SetLimits(kStatementMax, stop_);
  temporal::ResetPublishedTime(store_);
  ClearDeadCaptures(store_, lease);
  // Texts of values must not depend on the store's locale: they are part of versions.
  store_.Execute("SET lc_monetary = 'C'; SET maintenance_work_mem = '256MB'; "
                 "SET temp_buffers = '32MB'");
  try {
    ReadAll(lease);
    if (AnyGood() && (options_.keep_going || !AnyFailed())) ApplyAndPublish(lease);
  } catch (const Error& error) {
    if (capture_ != 0) {
      try {
        Abandon(lease, error.message());
      } catch (const Error& undo) {
        spdlog::warn("the next capture will clear this one: {}", undo.what());
      }
    }
    throw;
  }
  if (basis_) Settle();
  CaptureReport report{.capture = capture_, .basis = basis_, .members = {}};
  for (const auto& member : members_) report.members.push_back(member.report);
  if (!basis_) {
    for (auto& member : members_) member.capture->CleanUp(false);
    const auto failure = report.Failure();
    Abandon(lease, failure ? failure->message() : "nothing to publish");
  }
  return report;
}

}  // namespace

std::optional<Error> CaptureReport::Failure() const {
  for (const auto& member : members) {
    if (member.error) return member.error;
  }
  return std::nullopt;
}

CaptureReport RunCapture(const CaptureOptions& options, std::stop_token stop) {
  for (int tried = 1;; ++tried) {
    try {
      return Run(options, stop).Do();
    } catch (const Error& error) {
      const bool lost = error.IsConnectionLoss() || error.state() == base::kConnectionFailure;
      if (!lost || tried == kTries || stop.stop_requested()) throw;
      spdlog::info("the capture begins again: {}", error.what());
    }
    Pause(tried, stop);
  }
}

}  // namespace tidemark::capture
