// A mirror between a database of the shared source cluster and one of the shared store's (by
// default one throwaway cluster), run on a thread of the test.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "capture/mirror_job.h"
#include "source/postgres/read_position.h"
#include "source/postgres/slot.h"
#include "tests/cluster.h"
#include "tests/history_holds.h"

namespace tidemark::tests {

using namespace std::chrono_literals;

class MirrorFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    const auto suffix = std::to_string(++number);
    auto& cluster = Cluster::Shared();
    auto& sources = Cluster::SharedSource();
    options_.name = "m" + suffix;
    options_.source_dsn = sources.CreateDatabase("source" + suffix);
    options_.store_dsn = cluster.CreateDatabase("store" + suffix);
    source_.emplace(sources.Connect("source" + suffix));
    store_.emplace(cluster.Connect("store" + suffix));
  }
  void TearDown() override {
    Stop();
    if (store_) ExpectHistoryHolds(*store_);
    source::DropSlot(*source_, capture::SlotNameFor(options_.name), base::Deadline::After(20s));
  }
  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) {
      capture::MirrorJob job(options_);
      try {
        job.Run(stop);
      } catch (const base::Error& error) {
        failure_ = error.Full();
      }
    });
  }
  void Stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  // Log that nobody waits for, as of the pruning that a SELECT does, would stay unflushed, and so
  // unsent, for long on a source of its own.
  void FlushSource() {
    source_->Execute("BEGIN; SET LOCAL synchronous_commit = on; SELECT txid_current(); COMMIT");
  }
  // Waits until everything the source has committed so far is published.
  std::string CatchUp() {
    FlushSource();
    const auto lsn = source::CurrentEnd(*source_).ToString();
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed()) {
      if (!failure_.empty()) break;
      const auto known = store_->Execute("SELECT to_regclass('tidemark.resume') IS NOT NULL");
      if (known.boolean(0, 0)) {
        const auto done = store_->Execute(
            "SELECT 1 FROM tidemark.resume WHERE received_lsn >= $1::pg_lsn", {lsn});
        if (done.rows() > 0) return lsn;
        const auto failed = store_->Execute(
            "SELECT problems FROM tidemark.progress WHERE state = 'failed'");
        if (failed.rows() > 0) {
          ADD_FAILURE() << failed.text(0, 0);
          return lsn;
        }
      }
      std::this_thread::sleep_for(20ms);
    }
    ADD_FAILURE() << "not caught up to " << lsn << " " << failure_;
    return lsn;
  }
  // Waits until the store answers `condition` with true; what a mirror says of itself it writes a
  // moment after what it publishes.
  void Await(const std::string& condition) {
    const auto deadline = base::Deadline::After(60s);
    while (!deadline.passed() && failure_.empty()) {
      if (store_->Value("SELECT coalesce((" + condition + "), false)") == "t") return;
      std::this_thread::sleep_for(20ms);
    }
    ADD_FAILURE() << condition << "\n" << failure_ << State();
  }
  // What the mirror says of itself.
  std::string State() {
    return store_->Value("SELECT state || ' ' || problems FROM tidemark.progress");
  }
  std::string Rows(pg::Connection& on, const std::string& sql) {
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
  void ExpectSame(const std::string& sql) {
    EXPECT_EQ(Rows(*source_, sql), Rows(*store_, sql)) << sql;
  }

  capture::MirrorOptions options_;
  std::optional<pg::Connection> source_, store_;
  std::string failure_;
  std::jthread thread_;
};

}  // namespace tidemark::tests
