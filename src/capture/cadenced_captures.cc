#include "capture/cadenced_captures.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "capture/capture_run.h"
#include "capture/occurrences.h"

namespace tidemark::capture {
namespace {

// The clock may be set, and a wake-up may be missing, so both are looked at again this often.
constexpr std::chrono::milliseconds kLookEvery{500};

/// When each dataset is due by its cadence.
class Calendar {
 public:
  explicit Calendar(const CadenceOptions& options) : options_(options) {
    for (const auto& each : options.datasets) {
      due_.push_back(each.cadence ? std::optional(each.cadence->NextAfter(options.now()))
                                  : std::nullopt);
    }
  }

  /// Those that are due at `now`; each of them is next due after it.
  std::vector<PlannedDataset> Take(base::Timestamp now) {
    std::vector<PlannedDataset> taken;
    for (size_t i = 0; i < due_.size(); ++i) {
      if (!due_[i] || *due_[i] > now) continue;
      taken.push_back(options_.datasets[i].dataset);
      due_[i] = options_.datasets[i].cadence->NextAfter(std::max(now, *due_[i]));
    }
    return taken;
  }

  /// How long until a dataset is due, or until it is time to look again.
  std::chrono::milliseconds Left() const {
    const auto now = options_.now();
    std::chrono::milliseconds left = kLookEvery;
    for (const auto& due : due_) {
      if (!due) continue;
      const std::chrono::microseconds span(due->postgres_us() - now.postgres_us());
      left = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(span),
                        std::chrono::milliseconds(0), left);
    }
    return left;
  }

 private:
  const CadenceOptions& options_;
  std::vector<std::optional<base::Timestamp>> due_;
};

void Report(const CaptureReport& report) {
  for (const auto& member : report.members) {
    if (member.error) spdlog::error("dataset {}: {}", member.name, member.error->Full());
  }
  if (!report.basis) {
    spdlog::error("capture {}: nothing was published", report.capture);
    return;
  }
  const auto changed =
      std::ranges::count(report.members, MemberOutcome::kPublished, &MemberReport::outcome);
  spdlog::info("capture {}: published as basis {}, {} of {} datasets changed", report.capture,
               report.basis->number, changed, report.members.size());
}

/// Captures for what has been claimed, and settles it.
void Run(const CadenceOptions& options, std::vector<PlannedDataset> datasets,
         Occurrences& occurrences, const std::stop_token& stop) {
  CaptureOptions capture{.store_dsn = options.store_dsn,
                         .datasets = std::move(datasets),
                         .keep_going = options.keep_going,
                         .history = options.history,
                         .progressed = {}};
  try {
    const auto report = RunCapture(capture, stop);
    Report(report);
    occurrences.Settle(report);
  } catch (const base::Error& error) {
    occurrences.Settle(error);
    if (error.state() == base::kInternalError) throw;
    if (!stop.stop_requested()) spdlog::error("a capture failed: {}", error.Full());
  }
}

std::vector<std::string> NamesOf(const std::vector<PlannedDataset>& datasets) {
  std::vector<std::string> names;
  for (const auto& dataset : datasets) names.push_back(dataset.name);
  return names;
}

}  // namespace

void RunCadences(const CadenceOptions& options, std::stop_token stop) {
  std::map<std::string, PlannedDataset> by_name;
  for (const auto& each : options.datasets) by_name.emplace(each.dataset.name, each.dataset);
  std::vector<std::string> names;
  for (const auto& [name, dataset] : by_name) names.push_back(name);
  Occurrences occurrences(options.store_dsn, names, stop);
  Calendar calendar(options);
  while (!stop.stop_requested()) {
    bool idle = true;
    if (auto due = calendar.Take(options.now()); !due.empty()) {
      idle = false;
      occurrences.Claim(NamesOf(due));
      Run(options, std::move(due), occurrences, stop);
    }
    for (const auto& name : occurrences.Queued()) {
      if (stop.stop_requested()) return;
      if (!occurrences.Claim({name})) continue;
      idle = false;
      Run(options, {by_name.at(name)}, occurrences, stop);
    }
    if (idle) occurrences.Await(calendar.Left());
  }
}

}  // namespace tidemark::capture
