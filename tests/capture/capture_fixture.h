// Captures between a database of the shared source cluster, with tables, and a store in the shared
// throwaway cluster, with declared datasets between them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "capture/capture_run.h"
#include "source/postgres/postgres_relation.h"
#include "temporal/store.h"
#include "temporal/version_chain.h"
#include "tests/cluster.h"
#include "tests/history_holds.h"

namespace tidemark::tests {

using namespace std::chrono_literals;

class CaptureFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    const auto suffix = std::to_string(++number);
    auto& sources = Cluster::SharedSource();
    source_dsn_ = sources.CreateDatabase("captured" + suffix);
    store_dsn_ = Cluster::Shared().CreateDatabase("kept" + suffix);
    source_.emplace(sources.Connect("captured" + suffix));
    store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
    temporal::Migrate(*store_);
  }

  void TearDown() override { ExpectHistoryHolds(*store_); }

  /// public.<relation> of the source, kept under the same name.
  capture::PlannedDataset Snapshot(const std::string& relation,
                                   std::vector<std::string> key = {"id"}) const {
    return {.name = "public." + relation,
            .in_store = {"public", relation},
            .strategy = temporal::Strategy::kSnapshot,
            .key = std::move(key),
            .cursor = "",
            .overlap = "",
            .source = "shop",
            .source_kind = "postgres",
            .open = [options = source::PostgresOptions{.dsn = source_dsn_,
                                                       .relation = "public." + relation,
                                                       .snapshot = ""}] {
              return source::OpenPostgresRelation(options);
            },
            .mirror = std::nullopt};
  }
  capture::PlannedDataset ByCursor(const std::string& relation, const std::string& cursor,
                                   std::vector<std::string> key = {"id"}) const {
    auto planned = Snapshot(relation, std::move(key));
    planned.strategy = temporal::Strategy::kCursor;
    planned.cursor = cursor;
    return planned;
  }

  capture::CaptureReport Capture(std::vector<capture::PlannedDataset> datasets,
                                 bool keep_going = false) {
    return capture::RunCapture({.store_dsn = store_dsn_,
                                .datasets = std::move(datasets),
                                .keep_going = keep_going,
                                .history = history_,
                                .progressed = progressed_},
                               {});
  }
  /// A capture that must be published; its first member.
  capture::MemberReport Captured(std::vector<capture::PlannedDataset> datasets) {
    auto report = Capture(std::move(datasets));
    EXPECT_TRUE(report.basis);
    for (const auto& member : report.members) {
      if (member.error) ADD_FAILURE() << member.name << ": " << member.error->Full();
    }
    if (report.basis) instants_.push_back(report.basis->system_time);
    return report.members.at(0);
  }
  /// A capture that must fail; the first failure.
  base::Error Refused(std::vector<capture::PlannedDataset> datasets) {
    const auto before = Value("SELECT count(*) FROM tidemark.basis");
    const auto report = Capture(std::move(datasets));
    EXPECT_FALSE(report.basis);
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), before);
    ExpectNothingLeftBehind();
    const auto failure = report.Failure();
    if (!failure) {
      ADD_FAILURE() << "nothing failed";
      return base::Error(base::kInternalError, "nothing failed");
    }
    return *failure;
  }

  void ExpectNothingLeftBehind() {
    EXPECT_EQ(Value("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                    "WHERE n.nspname = 'tidemark_stage' AND c.relkind = 'r'"),
              "0");
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.dataset WHERE tx_first IS NULL"), "0");
    EXPECT_EQ(Value("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                    "WHERE n.nspname = 'tidemark_current' AND c.relkind = 'r' AND NOT EXISTS ("
                    "SELECT FROM tidemark.dataset d WHERE c.relname = 'd' || d.id)"),
              "0");
    EXPECT_EQ(Value("SELECT count(*) FROM tidemark.capture WHERE state = 'running'"), "0");
  }
  void ExpectChainsHold() {
    for (const auto& dataset : temporal::LoadVersionedDatasets(*store_)) {
      const auto check = temporal::CheckChain(*store_, dataset);
      for (const auto& broken : check.breaks) {
        ADD_FAILURE() << check.name.Display() << " at basis " << broken.basis << ", tx "
                      << broken.tx << ": " << broken.what;
      }
    }
  }
  void ExpectSame(const std::string& sql) {
    EXPECT_EQ(Rows(*source_, sql), Rows(*store_, sql)) << sql;
  }

  std::string Value(const std::string& sql) { return store_->Value(sql); }
  std::string Rows(const std::string& sql) { return Rows(*store_, sql); }
  static std::string Rows(pg::Connection& on, const std::string& sql) {
    const auto result = on.Execute(sql);
    std::string text;
    for (int i = 0; i < result.rows(); ++i) {
      for (int j = 0; j < result.columns(); ++j) {
        text += (j == 0 ? "" : "|") + (result.is_null(i, j) ? "NULL" : result.str(i, j));
      }
      text += "\n";
    }
    return text;
  }
  /// Rows of a table as of capture `number` (from 0).
  std::string AsOf(const std::string& columns, const std::string& table, size_t number) {
    return Rows("SELECT " + columns + " FROM tidemark.as_of(NULL::public." + table + ", '" +
                instants_.at(number) + "') ORDER BY 1");
  }

  std::string source_dsn_, store_dsn_;
  std::optional<pg::Connection> source_, store_;
  temporal::HistoryLimits history_;
  std::function<void(const capture::PlannedDataset&, int64_t)> progressed_;
  std::vector<std::string> instants_;  // of the publishes
};

}  // namespace tidemark::tests
