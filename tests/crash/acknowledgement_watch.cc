#include "tests/crash/acknowledgement_watch.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/lsn.h"
#include "pg/connection.h"

namespace tidemark::crash {

using base::Deadline;
using base::Lsn;

namespace {

constexpr std::chrono::milliseconds kInterval{5};
constexpr std::chrono::milliseconds kReconnectInterval{50};

}  // namespace

AcknowledgementWatch::AcknowledgementWatch(std::string source_dsn, std::string store_dsn,
                                           std::string slot)
    : source_dsn_(std::move(source_dsn)),
      store_dsn_(std::move(store_dsn)),
      slot_(std::move(slot)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

std::string AcknowledgementWatch::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  return wrong_;
}

void AcknowledgementWatch::Run(const std::stop_token& stop) {
  std::optional<pg::Connection> source, store;
  while (!stop.stop_requested() && wrong_.empty()) {
    auto pause = kInterval;
    try {
      const auto open = [](const std::string& dsn) {
        return pg::Connection::Open({.dsn = dsn}, Deadline::After(std::chrono::seconds(5)));
      };
      if (!source) source.emplace(open(source_dsn_));
      if (!store) store.emplace(open(store_dsn_));
      const auto slot = source->Execute(
          "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1", {slot_});
      if (slot.rows() == 1 && !slot.is_null(0, 0) &&
          store->Execute("SELECT to_regclass('tidemark.resume') IS NOT NULL").boolean(0, 0)) {
        const auto durable = store->Execute("SELECT received_lsn FROM tidemark.resume");
        // Before the first basis the slot stands where its snapshot was taken.
        if (durable.rows() == 1) {
          ++looks_;
          if (Lsn::Parse(slot.text(0, 0)) > Lsn::Parse(durable.text(0, 0))) {
            wrong_ = fmt::format("{} was confirmed, but only {} was durable", slot.text(0, 0),
                                 durable.text(0, 0));
          }
        }
      }
    } catch (const base::Error&) {
      source.reset();
      store.reset();
      pause = kReconnectInterval;
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tidemark::crash
