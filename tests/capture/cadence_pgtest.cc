// Datasets captured when their cadence says so, by a clock that the test sets.
#include <atomic>
#include <thread>

#include "capture/cadenced_captures.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

class CadencedCaptures : public CaptureFixture {
 protected:
  // 2026-11-30 09:58:30 UTC.
  static constexpr int64_t kBegin = (9830LL * 86'400 + 9 * 3600 + 58 * 60 + 30) * 1'000'000;

  void Start(std::vector<capture::CadencedDataset> datasets) {
    const int dues = static_cast<int>(datasets.size());
    thread_ = std::jthread([this, datasets = std::move(datasets)](std::stop_token stop) {
      capture::RunCadences({.store_dsn = store_dsn_,
                            .datasets = datasets,
                            .keep_going = keep_going_,
                            .now =
                                [this] {
                                  const base::Timestamp now(now_.load());
                                  ++asked_;
                                  return now;
                                }},
                           stop);
    });
    // When each is first due has been settled.
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed() && asked_ <= dues) std::this_thread::sleep_for(1ms);
  }
  void PassMinutes(int minutes) { now_ += int64_t{minutes} * 60'000'000; }
  void Await(const std::string& sql, const std::string& value) {
    const auto deadline = base::Deadline::After(30s);
    while (!deadline.passed() && Value(sql) != value) std::this_thread::sleep_for(20ms);
    EXPECT_EQ(Value(sql), value) << sql;
  }

  bool keep_going_ = false;
  std::atomic<int64_t> now_ = kBegin;
  std::atomic<int> asked_ = 0;
  std::jthread thread_;
};

constexpr const char* kBases = "SELECT count(*) FROM tidemark.basis";

TEST_F(CadencedCaptures, WhatIsDueTogetherIsOneBasisAndAFailureIsTriedAgain) {
  source_->Execute(
      "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1);"
      "CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1);"
      "CREATE TABLE seldom (id int PRIMARY KEY)");
  Start({{Snapshot("a"), capture::Cadence::Parse("* * * * *")},
         {Snapshot("b"), capture::Cadence::Parse("* * * * *")},
         {Snapshot("seldom"), capture::Cadence::Parse("0 0 1 1 *")}});
  std::this_thread::sleep_for(700ms);
  EXPECT_EQ(Value(kBases), "0") << "nothing is due yet";
  PassMinutes(1);
  Await(kBases, "1");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis_member"), "2");

  source_->Execute("INSERT INTO a VALUES (2); ALTER TABLE b RENAME TO b_gone");
  PassMinutes(1);
  Await("SELECT count(*) FROM tidemark.capture WHERE state = 'abandoned'", "1");
  EXPECT_EQ(Value(kBases), "1") << "a failing member holds back the others";
  source_->Execute("ALTER TABLE b_gone RENAME TO b");
  PassMinutes(1);
  Await(kBases, "2");
  EXPECT_EQ(Value("SELECT count(*) FROM public.a"), "2");
}

TEST_F(CadencedCaptures, KeepingGoingPublishesTheOthersAsADeclaredPartialGroup) {
  source_->Execute(
      "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1);"
      "CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1)");
  keep_going_ = true;
  Start({{Snapshot("a"), capture::Cadence::Parse("* * * * *")},
         {Snapshot("b"), capture::Cadence::Parse("* * * * *")}});
  PassMinutes(1);
  Await(kBases, "1");
  source_->Execute("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2); "
                   "ALTER TABLE b RENAME TO b_gone");
  PassMinutes(1);
  Await(kBases, "2");
  EXPECT_EQ(Value("SELECT count(*) FROM public.a"), "2");
  EXPECT_EQ(Value("SELECT count(*) FROM public.b"), "1");
  EXPECT_EQ(Rows("SELECT m.dataset, f.dataset, f.sqlstate FROM tidemark.basis b JOIN "
                 "tidemark.basis_member m ON m.basis = b.number JOIN tidemark.capture_failure f ON "
                 "f.capture = b.capture WHERE b.number = 2"),
            "1|public.b|42P01\n");
  source_->Execute("ALTER TABLE b_gone RENAME TO b");
  PassMinutes(1);
  Await("SELECT count(*) FROM public.b", "2");
}

TEST_F(CadencedCaptures, AClockSetBackMakesNothingDueTwice) {
  source_->Execute("CREATE TABLE a (id int PRIMARY KEY)");
  Start({{Snapshot("a"), capture::Cadence::Parse("* * * * *")}});
  PassMinutes(1);
  Await(kBases, "1");
  now_ -= 45'000'000;
  std::this_thread::sleep_for(1200ms);
  EXPECT_EQ(Value(kBases), "1");
  PassMinutes(2);
  Await(kBases, "2");
}

}  // namespace
}  // namespace tidemark::tests
