// Another PostgreSQL that asks a mirror through a gateway: a cluster of its own with postgres_fdw
// and dblink, whose foreign server is the gateway before the store of a real mirror, as a reader.
// The version of that other PostgreSQL is chosen by TIDEMARK_FOREIGN_PG_BINDIR.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {

class ForeignFixture : public ::testing::Test {
 public:
  static void SetUpTestSuite();
  static void TearDownTestSuite();

 protected:
  void SetUp() override;

  /// Runs it on the other PostgreSQL; rows as text, fields joined by |.
  std::string Rows(const std::string& sql);
  /// The SQLSTATE it fails with, or empty.
  std::string StateOf(const std::string& sql);
  /// What of a plan is sent to the gateway, and its nodes.
  std::string Plan(const std::string& sql);
  /// Updates the source and waits until the mirror shows it.
  void Write(const std::string& sql);
  /// A server with the gateway's address and more options, its user mapping, and the schema `local`
  /// with all tables of public imported from it.
  void CreateServer(const std::string& name, const std::string& options, const std::string& local);
  /// Waits until so many queries of the gateway's reader sleep on the store; how many do then.
  std::string AwaitSleeping(const std::string& count);
  /// The statements that the gateway's reader has sent to the store since this was last called.
  std::string SentToStore();

  static Mirror& mirror() { return *mirror_; }
  static GatewayThread& gateway() { return *gateway_; }
  static Cluster& other() { return *other_; }
  static std::string ConnectionString();

  std::optional<pg::Connection> local_;  // a database of the other PostgreSQL, new for each test

 private:
  static std::unique_ptr<Mirror> mirror_;
  static std::unique_ptr<GatewayThread> gateway_;
  static std::unique_ptr<Cluster> other_;
  std::streamoff log_read_ = 0;
};

}  // namespace tidemark::tests
