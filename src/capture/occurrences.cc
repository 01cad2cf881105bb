#include "capture/occurrences.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/kill_point.h"
#include "base/log.h"
#include "pg/wait.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::seconds kConnectMax{10};
// Not cut short by a stop: what a stopped process had claimed is to be seen as queued again.
constexpr std::chrono::seconds kStatementMax{10};

}  // namespace

Occurrences::Occurrences(std::string store_dsn, std::vector<std::string> datasets,
                         std::stop_token stop)
    : store_dsn_(std::move(store_dsn)), datasets_(std::move(datasets)), stop_(std::move(stop)) {}

pg::Connection& Occurrences::Store() {
  if (!store_) {
    store_.emplace(temporal::OpenStore(store_dsn_, Deadline::After(kConnectMax), stop_));
    temporal::Migrate(*store_);
    store_->SetLimits(kStatementMax, {});
  }
  return *store_;
}

// A session that failed in mid-statement may still hold locks; without it they are gone.
void Occurrences::Lose(const Error& error) {
  store_.reset();
  wake_.reset();
  if (error.state() == base::kInternalError) throw error;
  if (!lost_ && !stop_.stop_requested()) {
    spdlog::warn("occurrences cannot be read until the store answers: {}", error.what());
  }
  lost_ = true;
}

std::vector<std::string> Occurrences::Queued() {
  try {
    auto queued = temporal::LoadQueued(Store(), datasets_);
    lost_ = false;
    return queued;
  } catch (const Error& error) {
    Lose(error);
    return {};
  }
}

void Occurrences::Await(std::chrono::milliseconds most) {
  try {
    if (!store_) {
      pg::Bell().Wait(-1, false, Deadline::After(most), stop_);
    } else if (!wake_) {
      // Some may have come just before, so they are looked for once more before it is waited.
      wake_.emplace(store_dsn_, temporal::kOccurrencesChannel, Deadline::After(kConnectMax), stop_);
    } else if (wake_->Next(Deadline::After(most), stop_)) {
      while (wake_->Next(Deadline::After({}), stop_)) {
      }
    }
  } catch (const Error& error) {
    if (!stop_.stop_requested()) Lose(error);
  }
}

bool Occurrences::Claim(const std::vector<std::string>& datasets) {
  wake_.reset();  // who listens must read: PostgreSQL keeps what is not read
  try {
    claims_ = temporal::ClaimOccurrences(Store(), datasets);
  } catch (const Error& error) {
    claims_.clear();
    Lose(error);
  }
  if (!claims_.empty()) base::KillPoint("occurrences.claimed");
  return !claims_.empty();
}

void Occurrences::SettleOne(const temporal::OccurrenceClaim& claim, const CaptureReport& report) {
  const auto member = std::ranges::find(report.members, claim.dataset, &MemberReport::name);
  if (member == report.members.end()) return temporal::SettleQueued(Store(), claim, {});
  switch (member->outcome) {
    case MemberOutcome::kPublished:
    case MemberOutcome::kUnchanged:
      return temporal::SettleDone(Store(), claim, report.capture);
    case MemberOutcome::kNotPublished:
      return temporal::SettleQueued(Store(), claim, {});
    case MemberOutcome::kFailed:
      break;
  }
  const Error error = member->error.value_or(Error(base::kInternalError, "no reason was given"));
  if (error.IsTransient()) return temporal::SettleQueued(Store(), claim, error);
  temporal::SettleFailed(Store(), claim, error);
}

void Occurrences::Settle(const CaptureReport& report) {
  const auto claims = std::exchange(claims_, {});
  try {
    for (const auto& claim : claims) SettleOne(claim, report);
  } catch (const Error& error) {
    Lose(error);  // whoever claims them next captures once more
  }
}

void Occurrences::Settle(const Error& error) {
  const auto claims = std::exchange(claims_, {});
  const bool stopped = stop_.stop_requested();
  try {
    for (const auto& claim : claims) {
      temporal::SettleQueued(Store(), claim, stopped ? std::nullopt : std::optional(error));
    }
  } catch (const Error& lost) {
    Lose(lost);
  }
}

}  // namespace tidemark::capture
