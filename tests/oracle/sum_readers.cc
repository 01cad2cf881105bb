#include "tests/oracle/sum_readers.h"

#include <fmt/format.h>

#include <optional>
#include <random>

#include "base/error.h"
#include "base/identifier.h"
#include "tests/oracle/tables.h"

namespace tidemark::oracle {

using base::Error;

namespace {

constexpr size_t kComplaintsMost = 20;
constexpr std::chrono::milliseconds kRetryInterval{30};

std::string SumSql(const std::string& a, const std::string& b) {
  return fmt::format("SELECT (SELECT sum(balance) FROM {}) + (SELECT sum(balance) FROM {})", a, b);
}

std::string SumAsOf(const std::string& function, const std::string& at) {
  const auto of = [&](std::string_view table) {
    return fmt::format("tidemark.{}(NULL::public.{}, {})", function, table, at);
  };
  return SumSql(of("account_a"), of("account_b"));
}

}  // namespace

SumReaders::SumReaders(std::string store_dsn, int readers, uint64_t seed)
    : store_dsn_(std::move(store_dsn)) {
  for (int i = 0; i < readers; ++i) {
    threads_.emplace_back([this, seed, i](std::stop_token stop) {
      Run(seed * 100 + static_cast<uint64_t>(i), stop);
    });
  }
}

SumReaders::~SumReaders() { Stop(); }

std::vector<std::string> SumReaders::Stop() {
  for (auto& thread : threads_) thread.request_stop();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  return wrong_;
}

void SumReaders::Run(uint64_t seed, const std::stop_token& stop) {
  std::mt19937_64 random(seed);
  std::optional<pg::Connection> store;
  while (!stop.stop_requested()) {
    std::string problem;
    try {
      if (!store) {
        store.emplace(pg::Connection::Open(
            {.dsn = store_dsn_, .settings = {{"TimeZone", "UTC"}, {"DateStyle", "ISO"}}},
            base::Deadline::After(std::chrono::seconds(5))));
      }
      if (store->Execute("SELECT FROM pg_class WHERE relname = 'account_b'").rows() > 0) {
        Ask(*store, random());
        ++answers_;
        continue;
      }
    } catch (const Error& error) {
      const bool met_change = MetChangeOfColumns(error);  // asked again
      if (!error.IsConnectionLoss() && !met_change) problem = error.Full();
      if (!met_change) store.reset();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!problem.empty()) {
      const std::lock_guard lock(mutex_);
      if (wrong_.size() < kComplaintsMost) wrong_.push_back(problem);
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

void SumReaders::Expect(pg::Connection& store, const std::string& sql) {
  const auto sum = store.Execute(sql);
  if (sum.text(0, 0) == std::to_string(kMoney)) return;
  const auto again = store.Execute(sql);
  throw std::runtime_error(fmt::format("{} instead of {}, {} when asked again: {}",
                                       sum.optional(0, 0).value_or("NULL"), kMoney,
                                       again.optional(0, 0).value_or("NULL"), sql));
}

void SumReaders::Ask(pg::Connection& store, uint64_t choice) {
  const auto share = fmt::format("{}", static_cast<double>(choice >> 16 & 0xffff) / 65536.0);
  switch (choice % 4) {
    case 0:
      return Expect(store, SumSql("public.account_a", "public.account_b"));
    case 1: {
      const auto instant = store.Execute(
          "SELECT quote_literal(min(system_time) + (clock_timestamp() - min(system_time)) * "
          "$1::float8) FROM tidemark.basis",
          {share});
      return Expect(store, SumAsOf("as_of", instant.str(0, 0)));
    }
    case 2: {
      const auto instant = store.Execute("SELECT quote_literal(clock_timestamp())");
      return Expect(store, SumAsOf("as_of", instant.str(0, 0)));
    }
    default: {
      const auto position = store.Execute(
          "SELECT quote_literal(t.first + ((r.received_lsn - t.first) * $1::float8)::numeric) "
          "FROM (SELECT end_lsn AS first FROM tidemark.tx ORDER BY tx LIMIT 1) t, tidemark.resume "
          "r",
          {share});
      return Expect(store, SumAsOf("as_of_position", position.str(0, 0)));
    }
  }
}

}  // namespace tidemark::oracle
