// A mirror of a publication for all tables, whose source changes under it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {

class SourceChanges : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute(
        "CREATE TABLE t (id int PRIMARY KEY, x int, y text); "
        "INSERT INTO t SELECT i, i, 'y' || i FROM generate_series(1, 100) i; "
        "CREATE TABLE other (id int PRIMARY KEY, n int); INSERT INTO other VALUES (1, 1); "
        "CREATE PUBLICATION tidemark FOR ALL TABLES");
    Start();
    CatchUp();
    before_ = CatchUp();  // beyond the place of the slot
  }
  /// Waits until the store answers `sql` as the source does.
  void ExpectSoon(const std::string& sql) {
    const auto deadline = base::Deadline::After(60s);
    std::string wanted, got;
    do {
      wanted = Answer(*source_, sql);
      FlushSource();
      got = Answer(*store_, sql);
      if (got == wanted && failure_.empty()) return;
      std::this_thread::sleep_for(50ms);
    } while (!deadline.passed() && failure_.empty());
    ADD_FAILURE() << sql << "\nsource:\n" << wanted << "store:\n" << got << failure_ << Problems();
  }
  std::string Problems() {
    return store_->Value("SELECT string_agg(problems::text, ' ') FROM tidemark.progress");
  }
  /// Errors are answers, too: a table that is not there yet.
  std::string Answer(pg::Connection& on, const std::string& sql) {
    try {
      return Rows(on, sql);
    } catch (const base::Error& error) {
      if (error.IsConnectionLoss()) throw;
      return error.message() + "\n";
    }
  }
  std::string AsOf(const std::string& lsn, const std::string& what,
                   const std::string& table = "t") {
    return Rows(*store_, "SELECT " + what + " FROM tidemark.as_of_position(NULL::public." + table +
                             ", '" + lsn + "')");
  }
  std::string Syncs() { return store_->Value("SELECT count(*) FROM tidemark.resync"); }

  std::string before_;
};

}  // namespace tidemark::tests
