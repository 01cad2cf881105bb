// For tests of the wire: a gateway in this process before a database of its own, and what such
// tests ask again and again. The database is empty; time travel is tested elsewhere.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "gateway/listener.h"
#include "tests/cluster.h"
#include "tests/gateway/raw_client.h"

namespace tidemark::tests {

class WireFixture : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kPatience{30};

  void SetUp() override {
    name_ = fmt::format("wire_{}", ++count_);
    cluster().CreateDatabase(name_);
    options_.listen_port = 0;
    options_.store.host = cluster().host();
    options_.on_log = [](std::string_view) {};
  }
  void TearDown() override { Stop(); }

  /// The server that is the store.
  virtual Cluster& cluster() { return Cluster::Shared(); }

  /// Starts it at the first use; `options_` are of no effect afterwards.
  gateway::Listener& listener() {
    if (!listener_) {
      listener_ = std::make_unique<gateway::Listener>(options_);
      thread_ = std::jthread([this](std::stop_token stop) { listener_->Run(stop); });
    }
    return *listener_;
  }
  void Stop() {
    thread_ = {};
    listener_.reset();
  }

  std::string Dsn(std::string_view more = {}) {
    return fmt::format("host=127.0.0.1 port={} dbname={} user=postgres {}", listener().port(),
                       name_, more);
  }
  pg::Connection Connect(std::string_view more = {}) {
    return pg::Connection::Open({.dsn = Dsn(more)}, base::Deadline::After(kPatience));
  }
  /// How a connection fails.
  base::Error ConnectError(std::string_view more = {}) {
    try {
      Connect(more);
    } catch (const base::Error& error) {
      return error;
    }
    return {base::SqlState("00000"), "connected"};
  }
  gateway::RawClient Raw() { return gateway::RawClient(listener().port()); }

  template <typename Condition>
  static bool Becomes(Condition&& condition) {
    const auto deadline = base::Deadline::After(kPatience);
    while (!deadline.passed()) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  /// Waits at the server until `sql` gives true.
  bool BecomesTrue(const std::string& sql) {
    auto direct = cluster().Connect(name_);
    return Becomes([&] { return direct.Value(sql) == "t"; });
  }
  /// Nobody is left: neither here nor at the store.
  bool BecomesDeserted() {
    return Becomes([&] { return listener().sessions() == 0; }) &&
           BecomesTrue(
               "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database()"
               " AND pid <> pg_backend_pid()");
  }

  gateway::Options options_;
  std::string name_;

 private:
  static inline int count_ = 0;
  std::unique_ptr<gateway::Listener> listener_;
  std::jthread thread_;
};

/// A simple query as bytes.
inline std::string QueryBytes(std::string_view sql) {
  std::string bytes;
  wire::Query{sql}.Write(bytes);
  return bytes;
}

/// A StartupMessage as bytes.
inline std::string StartupBytes(std::string_view database, uint16_t minor = 0) {
  std::string bytes;
  wire::WriteStartup(bytes, {{"user", "postgres"}, {"database", database}}, minor);
  return bytes;
}

}  // namespace tidemark::tests
