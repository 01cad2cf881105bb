#include "tests/oracle/workload.h"

#include <algorithm>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/identifier.h"
#include "base/log.h"
#include "pg/connection.h"

namespace tidemark::oracle {

using base::Deadline;
using base::Error;

namespace {

constexpr std::chrono::milliseconds kReconnectInterval{50};

pg::Connection Open(const std::string& dsn) {
  return pg::Connection::Open(
      {.dsn = dsn,
       .application_name = "workload",
       .settings = {{"lock_timeout", "300ms"}, {"statement_timeout", "20s"}}},
      Deadline::After(std::chrono::seconds(5)));
}

// What a session that lost its line had prepared would hold its locks for ever.
void EndPrepared(pg::Connection& source, int session) {
  const auto rows = source.Execute(
      "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() "
      "AND starts_with(gid, $1)",
      {"workload_" + std::to_string(session) + "_"});
  for (int i = 0; i < rows.rows(); ++i) {
    source.Execute("ROLLBACK PREPARED " + base::QuoteLiteral(rows.text(i, 0)));
  }
}

}  // namespace

Workload::Workload(WorkloadOptions options) : options_(std::move(options)) {
  for (int i = 0; i < options_.sessions; ++i) {
    threads_.emplace_back([this, i](std::stop_token stop) { Run(i, stop); });
  }
}

Workload::~Workload() { Stop(); }

void Workload::Stop() {
  for (auto& thread : threads_) thread.request_stop();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool Workload::Do(int transactions, Deadline deadline) {
  const int goal = committed_ + transactions;
  while (committed_ < goal && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return committed_ >= goal;
}

void Workload::Run(int session, const std::stop_token& stop) {
  const uint64_t seed = options_.seed * 1000 + static_cast<uint64_t>(session);
  ScriptWriter writer(seed, session, options_.script);
  std::minstd_rand pauses(static_cast<unsigned>(seed));
  std::optional<pg::Connection> source;
  for (int n = 1; !stop.stop_requested(); ++n) {
    const bool large = session == 0 && options_.large_every > 0 && n % options_.large_every == 0;
    const auto script = large ? writer.NextLarge() : writer.Next();
    if (calm_ && std::any_of(script.begin(), script.end(), [](const auto& statement) {
          return statement.starts_with("TRUNCATE") || statement.starts_with("VACUUM FULL") ||
                 statement.find("ALTER TABLE rewritten") != std::string::npos;
        })) {
      continue;
    }
    try {
      if (!source || !source->IsOpen()) {
        source.emplace(Open(options_.dsn));
        EndPrepared(*source, session);
      }
      for (const auto& statement : script) source->Execute(statement);
      ++committed_;
    } catch (const Error& error) {
      ++failed_;
      spdlog::debug("workload: {}", error.Full());
      try {
        if (source && source->IsOpen() && !error.IsConnectionLoss()) {
          source->Execute("ROLLBACK");
        } else {
          source.reset();
          std::this_thread::sleep_for(kReconnectInterval);
        }
      } catch (const Error&) {
        source.reset();
      }
    }
    if (options_.pause_us_max > 0) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(pauses() % static_cast<unsigned>(options_.pause_us_max)));
    }
  }
  try {
    if (!source || !source->IsOpen()) source.emplace(Open(options_.dsn));
    EndPrepared(*source, session);
  } catch (const Error& error) {
    spdlog::debug("workload: {}", error.Full());
  }
}

}  // namespace tidemark::oracle
