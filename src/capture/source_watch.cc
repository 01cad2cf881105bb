#include "capture/source_watch.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "capture/source_connection.h"
#include "pg/wait.h"
#include "source/postgres/read_position.h"
#include "temporal/store.h"

namespace tidemark::capture {

using base::Deadline;

namespace {

// Between two looks: twenty times as long as one takes, within these bounds. What rewrites rows unseen
// is to be noticed within ten seconds.
constexpr std::chrono::milliseconds kIntervalLeast{1000}, kIntervalMost{5000};
constexpr int kShare = 20;
constexpr std::chrono::seconds kConnectMax{10}, kLookMax{60};

}  // namespace

SourceView LookAtSource(pg::Connection& source, pg::Connection& store,
                        const std::string& publication, int journal) {
  SourceView view;
  view.began = Deadline::Clock::now();
  {
    pg::Transaction same_snapshot(source, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    view.tables = source::LoadTableStates(source, publication);
    view.inheritance = source::LoadInheritance(source);
    std::move(same_snapshot).Commit();
  }
  view.seen_at = source::CurrentEnd(source);
  const auto wanted = store.Execute(
      "SELECT DISTINCT r.dataset FROM tidemark.resync r JOIN tidemark.dataset d ON d.id = r.dataset "
      "WHERE d.journal = $1 AND r.ended_at IS NULL",
      {std::to_string(journal)});
  for (int i = 0; i < wanted.rows(); ++i) {
    view.resyncs.push_back(static_cast<int>(wanted.int64(i, 0)));
  }
  return view;
}

SourceWatch::SourceWatch(const MirrorOptions& options, int journal)
    : thread_([this, options, journal](std::stop_token stop) { Run(options, journal, stop); }) {}

std::optional<SourceView> SourceWatch::Take() {
  const std::lock_guard lock(mutex_);
  auto view = std::move(view_);
  view_.reset();
  return view;
}

void SourceWatch::Run(const MirrorOptions& options, int journal, const std::stop_token& stop) {
  std::optional<pg::Connection> source, store;
  pg::Bell bell;
  while (!stop.stop_requested()) {
    const auto began = Deadline::Clock::now();
    try {
      if (!source || !source->IsOpen()) {
        source = OpenSource(options.source_dsn, Deadline::After(kConnectMax), stop);
        source->SetLimits(kLookMax, stop);
      }
      if (!store || !store->IsOpen()) {
        store = temporal::OpenStore(options.store_dsn, Deadline::After(kConnectMax), stop);
        store->SetLimits(kLookMax, stop);
      }
      auto view = LookAtSource(*source, *store, options.publication, journal);
      const std::lock_guard lock(mutex_);
      view_ = std::move(view);
    } catch (const base::Error& error) {
      if (!stop.stop_requested()) spdlog::warn("watching the source: {}", error.what());
      source.reset();
      store.reset();
    }
    const auto interval = std::clamp(
        std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - began) * kShare,
        kIntervalLeast, kIntervalMost);
    try {
      bell.Wait(-1, false, Deadline::After(interval), stop);
    } catch (const base::Error&) {
      break;  // stopped
    }
  }
}

}  // namespace tidemark::capture
