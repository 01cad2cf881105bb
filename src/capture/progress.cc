#include "capture/progress.h"

#include <condition_variable>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "pg/connection.h"
#include "temporal/store.h"

namespace tidemark::capture {

namespace {

constexpr std::chrono::milliseconds kInterval{1000};
constexpr std::chrono::milliseconds kFlushCheck{100};

std::string_view Word(CaptureState state) {
  switch (state) {
    case CaptureState::kStarting: return "starting";
    case CaptureState::kWaiting: return "waiting";
    case CaptureState::kCopying: return "copying";
    case CaptureState::kStreaming: return "streaming";
    case CaptureState::kFailed: return "failed";
    case CaptureState::kStopped: return "stopped";
  }
  return "unknown";
}

nlohmann::json JsonOf(const Complaint& c) {
  return {{"sqlstate", c.sqlstate}, {"message", c.message}, {"detail", c.detail},
          {"hint", c.hint},         {"table", c.table},     {"note", c.note}};
}

pg::Parameter IfKnown(int64_t value) {
  return value < 0 ? pg::Parameter() : pg::Parameter(std::to_string(value));
}

constexpr const char* kStore = R"sql(
INSERT INTO tidemark.progress AS p (journal, state, heartbeat, source_lsn, copied_rows,
                                    copy_rows_expected, copied_bytes, retained_bytes, problems,
                                    failures, slot_safe_bytes, log_free_bytes)
VALUES ($1, $2, pg_catalog.clock_timestamp(), $3::pg_lsn, $4::bigint, $5::bigint, $6::bigint,
        $7::bigint, $8::jsonb, $9::bigint, $10::bigint, $11::bigint)
ON CONFLICT (journal) DO UPDATE
SET state = excluded.state, heartbeat = excluded.heartbeat,
    source_lsn = coalesce(excluded.source_lsn, p.source_lsn),
    copied_rows = excluded.copied_rows, copy_rows_expected = excluded.copy_rows_expected,
    copied_bytes = excluded.copied_bytes,
    retained_bytes = coalesce(excluded.retained_bytes, p.retained_bytes),
    slot_safe_bytes = excluded.slot_safe_bytes, log_free_bytes = excluded.log_free_bytes,
    problems = excluded.problems, failures = p.failures + excluded.failures
)sql";

}  // namespace

Progress::Progress(std::string store_dsn, int journal)
    : store_dsn_(std::move(store_dsn)), journal_(journal) {
  writer_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

Progress::~Progress() {
  writer_.request_stop();
  writer_.join();
}

void Progress::SetState(CaptureState state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  flush_wanted_ = true;
}

void Progress::SetStanding(std::vector<Complaint> complaints) {
  const std::lock_guard lock(mutex_);
  standing_ = std::move(complaints);
}

void Progress::SetTables(std::vector<Complaint> complaints) {
  const std::lock_guard lock(mutex_);
  tables_ = std::move(complaints);
}

void Progress::SetFailure(std::optional<Complaint> failure) {
  const std::lock_guard lock(mutex_);
  if (!failure && !failure_) return;
  if (failure) ++failures_;
  failure_ = std::move(failure);
  flush_wanted_ = true;
}

bool Progress::SetSlot(std::optional<Complaint> danger) {
  const std::lock_guard lock(mutex_);
  const bool news = danger.has_value() != slot_.has_value() ||
                    (danger && danger->message != slot_->message);
  slot_ = std::move(danger);
  flush_wanted_ = flush_wanted_ || news;
  return news;
}

void Progress::Flush() { flush_wanted_ = true; }

std::string Progress::ComplaintsJson() const {
  auto json = nlohmann::json::array();
  if (failure_) json.push_back(JsonOf(*failure_));
  if (slot_) json.push_back(JsonOf(*slot_));
  for (const auto& complaint : tables_) json.push_back(JsonOf(complaint));
  for (const auto& complaint : standing_) json.push_back(JsonOf(complaint));
  // A text from the source may hold anything; what is no UTF-8 is shown as such.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Progress::Run(const std::stop_token& stop) {
  std::optional<pg::Connection> store;
  std::mutex sleep_mutex;
  std::condition_variable_any sleep;
  const auto write = [&] {
    int64_t failures = 0;
    try {
      if (!store || !store->IsOpen()) {
        store = temporal::OpenStore(store_dsn_, base::Deadline::After(std::chrono::seconds(10)));
        store->Execute("SET synchronous_commit = off");
        store->SetLimits(std::chrono::seconds(10), {});
      }
      std::string state, problems;
      {
        const std::lock_guard lock(mutex_);
        state = Word(state_);
        problems = ComplaintsJson();
        failures = std::exchange(failures_, 0);
      }
      const uint64_t lsn = source_lsn_;
      store->ExecutePrepared(
          kStore, {std::to_string(journal_), state,
                   lsn == 0 ? pg::Parameter() : pg::Parameter(base::Lsn(lsn).ToString()),
                   IfKnown(copied_rows_), IfKnown(rows_expected_), IfKnown(copied_bytes_),
                   IfKnown(retained_bytes_), problems, std::to_string(failures),
                   IfKnown(safe_bytes_), IfKnown(free_bytes_)});
    } catch (const base::Error& error) {
      spdlog::debug("progress could not be written: {}", error.what());
      store.reset();
      const std::lock_guard lock(mutex_);
      failures_ += failures;
    }
  };
  while (!stop.stop_requested()) {
    write();
    const auto next = base::Deadline::After(kInterval);
    while (!stop.stop_requested() && !next.passed() && !flush_wanted_.exchange(false)) {
      std::unique_lock lock(sleep_mutex);
      sleep.wait_for(lock, stop, kFlushCheck, [] { return false; });
    }
  }
  write();
}

}  // namespace tidemark::capture
