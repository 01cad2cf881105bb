#include "capture/cadenced_captures.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "capture/capture_run.h"

namespace tidemark::capture {
namespace {

// The clock may be set, so it is looked at again this often.
constexpr std::chrono::milliseconds kLookEvery{500};

/// Returns at `due` by `now`, or on stop.
void WaitUntil(base::Timestamp due, const std::function<base::Timestamp()>& now,
               const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && now() < due) {
    const std::chrono::microseconds left(due.postgres_us() - now().postgres_us());
    const auto wait = std::clamp<std::chrono::microseconds>(left, std::chrono::microseconds(1),
                                                            kLookEvery);
    wake.wait_for(lock, stop, wait, [] { return false; });
  }
}

void Report(const CaptureReport& report) {
  for (const auto& member : report.members) {
    if (member.error) spdlog::error("dataset {}: {}", member.name, member.error->Full());
  }
  if (!report.basis) {
    spdlog::error("capture {}: nothing was published", report.capture);
    return;
  }
  const auto changed = std::ranges::count(report.members, MemberOutcome::kPublished,
                                          &MemberReport::outcome);
  spdlog::info("capture {}: published as basis {}, {} of {} datasets changed", report.capture,
               report.basis->number, changed, report.members.size());
}

}  // namespace

void RunCadences(const CadenceOptions& options, std::stop_token stop) {
  std::vector<base::Timestamp> due;
  for (const auto& each : options.datasets) due.push_back(each.cadence.NextAfter(options.now()));
  while (!due.empty() && !stop.stop_requested()) {
    WaitUntil(*std::ranges::min_element(due), options.now, stop);
    if (stop.stop_requested()) return;
    const base::Timestamp now = options.now();
    CaptureOptions capture{.store_dsn = options.store_dsn, .datasets = {}, .history = {},
                           .progressed = {}};
    for (size_t i = 0; i < due.size(); ++i) {
      if (due[i] > now) continue;
      capture.datasets.push_back(options.datasets[i].dataset);
      due[i] = options.datasets[i].cadence.NextAfter(std::max(now, due[i]));
    }
    try {
      Report(RunCapture(capture, stop));
    } catch (const base::Error& error) {
      if (error.state() == base::kInternalError) throw;
      if (!stop.stop_requested()) spdlog::error("a capture failed: {}", error.Full());
    }
  }
}

}  // namespace tidemark::capture
