// One mirror with a short past, shared by the tests of a suite, and a gateway in front of its
// store. The tests only read the mirrored tables.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/listener.h"
#include "tests/gateway/sql_client.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {

/// A gateway before the shared cluster, on a thread of its own.
class GatewayThread {
 public:
  GatewayThread();
  std::string Dsn(const std::string& database, const std::string& user = "postgres") const;
  uint16_t port() const { return listener_->port(); }

 private:
  std::unique_ptr<gateway::Listener> listener_;
  std::jthread thread_;
};

/// A mirror whose parts tests may use from outside.
class Mirror : public MirrorFixture {
 public:
  using MirrorFixture::CatchUp;
  using MirrorFixture::options_;
  using MirrorFixture::Rows;
  using MirrorFixture::SetUp;
  using MirrorFixture::source_;
  using MirrorFixture::Start;
  using MirrorFixture::store_;
  using MirrorFixture::TearDown;
  /// The newest basis's system time.
  std::string Newest();
  std::string database() { return store_->Value("SELECT current_database()"); }

 private:
  void TestBody() override {}
};

/// public.t (id, n, note) with versions n = 0 (first copy) to 3, each in a basis of its own.
class TimeTravelFixture : public ::testing::Test {
 public:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

 protected:
  /// The start of version n as a literal, shifted by so many microseconds.
  static std::string At(int n, int microseconds = 0);
  static std::string SourceAt(int n);
  static std::string Position(int n);
  /// The same without quotes, for parameters.
  static std::string InstantOf(int n, int microseconds = 0);
  static SqlClient Client(const std::string& user = "postgres");
  static SqlClient Direct();
  static Mirror& mirror() { return *mirror_; }
  static GatewayThread& gateway() { return *gateway_; }

  /// Runs it in the simple and the extended protocol, which must agree; returns that answer.
  static Answer Both(SqlClient& client, const std::string& sql);
  static std::string RowsOf(SqlClient& client, const std::string& sql);

 private:
  static std::unique_ptr<Mirror> mirror_;
  static std::unique_ptr<GatewayThread> gateway_;
  static std::vector<std::string> bases_, source_times_, positions_;
};

}  // namespace tidemark::tests
