#include "capture/capture_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/kill_point.h"
#include "base/log.h"
#include "capture/capture_journal.h"
#include "capture/dataset_capture.h"
#include "capture/journal.h"
#include "capture/progress.h"
#include "pg/wait.h"
#include "temporal/capture_publish.h"
#include "temporal/lease.h"
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

Complaint ComplaintOf(const Error& error) {
  return {error.state().str(), error.message(), error.detail(), error.hint(), "", false};
}

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
    std::unique_ptr<DatasetCapture> capture;
    MemberReport report;
    bool good() const { return report.outcome != MemberOutcome::kFailed; }
  };

  void ReadAll(const temporal::Lease& lease);
  void Read(Member& member);
  void Fail(Member& member, const Error& error);
  bool AnyFailed() const;
  bool AnyGood() const;
  void ApplyAndPublish(const temporal::Lease& lease);
  bool TryPublish(const temporal::Lease& lease);
  void Abandon(const temporal::Lease& lease, const std::string& reason);
  void Tidy();

  const CaptureOptions& options_;
  std::stop_token stop_;
  pg::Connection store_;
  int64_t capture_ = 0;
  std::vector<Member> members_;
  std::vector<temporal::CapturedMember> captured_;
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
  member.report.error->AddContext(fmt::format("capturing dataset \"{}\"", member.planned->name));
}

void Run::Read(Member& member) {
  DatasetCapture& capture = *member.capture;
  std::optional<Progress> progress;
  for (int tried = 1;; ++tried) {
    try {
      const int journal = capture.Register();
      if (!progress) progress.emplace(options_.store_dsn, journal);
      progress->RestartCopy();
      progress->SetState(CaptureState::kCopying);
      int64_t reported = 0;
      capture.Read(
          [&](int64_t rows, int64_t bytes) {
            progress->AddCopied(rows - reported, bytes);
            reported = rows;
            if (options_.progressed) options_.progressed(*member.planned, rows);
          },
          stop_);
      if (options_.progressed) options_.progressed(*member.planned, capture.rows());
      progress->SetState(CaptureState::kStopped);
      return;
    } catch (const Error& error) {
      // Only the source's line may be lost: without the store's there is no lease either.
      if (stop_.stop_requested() || !store_.IsOpen()) throw;
      const bool again = error.state().error_class() == "08" && tried < kTries;
      if (!again) {
        if (progress) {
          progress->SetState(CaptureState::kFailed);
          progress->SetFailure(ComplaintOf(error));
        }
        capture.CleanUp(false);
        Fail(member, error);
        return;
      }
      spdlog::info("dataset {}: {}; trying again", member.planned->name, error.what());
      capture.CleanUp(false);
    }
    Pause(tried, stop_);
  }
}

void Run::ReadAll(const temporal::Lease& lease) {
  capture_ = BeginDatasetsCapture(store_, lease);
  for (const auto& planned : options_.datasets) {
    Member member{.planned = &planned,
                  .capture = std::make_unique<DatasetCapture>(store_, capture_, planned),
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
  captured_.clear();
  std::vector<Member*> order;
  for (auto& member : members_) {
    if (member.good()) order.push_back(&member);
  }
  std::sort(order.begin(), order.end(), [](const Member* a, const Member* b) {
    return a->capture->dataset_id() < b->capture->dataset_id();
  });
  pg::Transaction tx(store_);
  for (Member* member : order) {
    store_.Execute("SAVEPOINT tidemark_member");
    try {
      captured_.push_back(member->capture->Apply());
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
  if (captured_.empty()) return true;
  for (const auto& member : members_) {
    if (!member.good()) StoreFailure(store_, capture_, member.planned->name, *member.report.error);
  }
  EndCapture(store_, capture_, "published", "");
  try {
    basis_ = temporal::PublishCapture(std::move(tx), lease, capture_, captured_);
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
  if (!basis_) return;
  for (auto& member : members_) {
    if (!member.good()) continue;
    const auto published = std::find_if(
        captured_.begin(), captured_.end(),
        [&](const auto& c) { return c.dataset == member.capture->dataset_id(); });
    member.report.outcome =
        published->changed ? MemberOutcome::kPublished : MemberOutcome::kUnchanged;
    member.report.puts = published->transition.puts;
    member.report.deletions = published->transition.deletions;
    member.report.live_rows = published->live_rows;
    member.report.version = published->version;
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
void Run::Tidy() {
  try {
    temporal::HistoryPartitions partitions(store_, options_.history);
    for (auto& member : members_) {
      member.capture->CleanUp(member.good());
      if (!member.good()) continue;
      const auto published = std::find_if(
          captured_.begin(), captured_.end(),
          [&](const auto& c) { return c.dataset == member.capture->dataset_id(); });
      if (published == captured_.end() || published->transition.to_history == 0) continue;
      partitions.Count(member.capture->dataset(), published->transition.to_history);
      partitions.RollOver(member.capture->dataset(), published->tx + 1);
    }
    while (!stop_.stop_requested() && temporal::SealOne(store_)) {
    }
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
  store_.Execute("SET lc_monetary = 'C'; SET maintenance_work_mem = '256MB'");
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
  CaptureReport report{.capture = capture_, .basis = basis_, .members = {}};
  for (const auto& member : members_) report.members.push_back(member.report);
  if (basis_) {
    Tidy();
  } else {
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
