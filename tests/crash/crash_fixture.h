// What the crash tests share: a source and a store that survive a crash of their own (fsync on),
// the follower between them, the workload, its witness, and the readers that must never see
// anything wrong. One database on each side for every test.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/lsn.h"
#include "pg/connection.h"
#include "tests/cluster.h"
#include "tests/crash/acknowledgement_watch.h"
#include "tests/crash/follower_process.h"
#include "tests/immutability/instant_readers.h"
#include "tests/oracle/comparison.h"
#include "tests/oracle/sum_readers.h"
#include "tests/oracle/witness.h"
#include "tests/oracle/workload.h"

namespace tidemark::crash {

/// The number in an environment variable.
int Setting(const char* name, int otherwise);

tests::Cluster& SourceCluster();
tests::Cluster& StoreCluster();

class Crash : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string slot() const { return "tidemark_" + name_; }
  pg::Connection& Source() { return Open(source_, SourceCluster()); }
  pg::Connection& Store() { return Open(store_, StoreCluster()); }
  void StartWorkload();
  void StartReaders();
  /// Waits until everything committed so far is received by the store. Asserts.
  void CatchUp();
  void CatchUpAndCompare();
  /// The end of a test: all is quiet from here on, every commit is compared, the follower stopped.
  void EndAndCompareAll();
  /// No slot but ours, no table of a half copy.
  void ExpectNothingLeftBehind();
  bool NothingPublished();
  bool WaitFirstBasis();

  std::string name_, source_dsn_, store_dsn_;
  std::optional<pg::Connection> source_, store_;
  std::optional<oracle::Witness> witness_;
  std::optional<FollowerProcess> follower_;
  std::optional<oracle::Comparison> comparison_;
  std::optional<AcknowledgementWatch> watch_;
  std::optional<oracle::Workload> workload_;
  std::optional<oracle::SumReaders> sums_;
  std::optional<immutability::InstantReaders> instants_;

 private:
  pg::Connection& Open(std::optional<pg::Connection>& line, tests::Cluster& cluster);
};

}  // namespace tidemark::crash
