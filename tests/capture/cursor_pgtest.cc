// The cursor strategy: only the declared delta is read, and nothing is missed.
#include <atomic>
#include <random>
#include <thread>

#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using capture::MemberOutcome;
using ::testing::HasSubstr;

class CursorCapture : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE audit (id bigint PRIMARY KEY, at timestamptz NOT NULL, what text); "
        "INSERT INTO audit SELECT i, '2026-01-01'::timestamptz + i * interval '1.000001 s', "
        "'event ' || i FROM generate_series(1, 500) i");
  }
};

TEST_F(CursorCapture, OnlyWhatWasAppendedIsRead) {
  EXPECT_EQ(Captured({ByCursor("audit", "id")}).puts, 500);
  EXPECT_EQ(Value("SELECT \"position\" ->> 'cursor' FROM tidemark.resume"), "500");
  // A change and a deletion below the cursor are not seen: the relation is declared append-only.
  source_->Execute("UPDATE audit SET what = 'changed' WHERE id = 1; DELETE FROM audit WHERE id = "
                   "2; "
                   "INSERT INTO audit VALUES (501, now(), 'more')");
  const auto member = Captured({ByCursor("audit", "id")});
  EXPECT_EQ(member.puts, 1);
  EXPECT_EQ(member.deletions, 0);
  EXPECT_EQ(member.live_rows, 501);
  EXPECT_EQ(Value("SELECT what FROM public.audit WHERE id = 1"), "event 1");
  EXPECT_EQ(Captured({ByCursor("audit", "id")}).outcome, MemberOutcome::kUnchanged);
  ExpectNothingLeftBehind();
  ExpectChainsHold();
}

TEST_F(CursorCapture, ExactTextOfTheCursorIsKept) {
  Captured({ByCursor("audit", "at")});
  EXPECT_EQ(Value("SELECT \"position\" ->> 'cursor' FROM tidemark.resume"),
            source_->Value("SELECT max(at) AT TIME ZONE 'UTC' || '+00' FROM audit"));
  source_->Execute("INSERT INTO audit SELECT 1000, max(at) + interval '1 us', 'later' FROM audit; "
                   "INSERT INTO audit SELECT 999, max(at), 'tie below' FROM audit; "
                   "INSERT INTO audit SELECT 1001, max(at), 'tie above' FROM audit");
  EXPECT_EQ(Captured({ByCursor("audit", "at")}).puts, 3);
  ExpectSame("SELECT id, what FROM public.audit ORDER BY id");
}

TEST_F(CursorCapture, RowsReadAgainMakeNoVersion) {
  Captured({ByCursor("audit", "id")});
  auto again = ByCursor("audit", "id");
  again.overlap = "100";
  EXPECT_EQ(Captured({again}).outcome, MemberOutcome::kUnchanged);
  source_->Execute("UPDATE audit SET what = 'corrected' WHERE id = 450; "
                   "INSERT INTO audit VALUES (501, now(), 'more')");
  const auto member = Captured({again});
  EXPECT_EQ(member.puts, 2);
  EXPECT_EQ(member.live_rows, 501);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_history.d1"), "1");
  EXPECT_EQ(Value("SELECT what FROM public.audit WHERE id = 450"), "corrected");
  ExpectChainsHold();
}

TEST_F(CursorCapture, ACursorThatGoesBackwardsIsRefused) {
  Captured({ByCursor("audit", "id")});
  source_->Execute("DELETE FROM audit WHERE id > 100");
  EXPECT_EQ(Refused({ByCursor("audit", "id")}).state(), base::kNotInPrerequisiteState);
  EXPECT_EQ(Value("SELECT count(*) FROM public.audit"), "500");
}

TEST_F(CursorCapture, AColumnThatLosesValuesByItsNewTypeIsRefused) {
  Captured({ByCursor("audit", "id")});
  source_->Execute("ALTER TABLE audit ALTER what TYPE int USING id");
  EXPECT_EQ(Refused({ByCursor("audit", "id")}).state(), base::kDatatypeMismatch);
  source_->Execute("ALTER TABLE audit DROP what; ALTER TABLE audit ADD who text; "
                   "INSERT INTO audit VALUES (600, now(), 'me')");
  EXPECT_EQ(Captured({ByCursor("audit", "id")}).puts, 1);
  EXPECT_EQ(Rows("SELECT id, who FROM public.audit WHERE id IN (500, 600) ORDER BY 1"),
            "500|NULL\n600|me\n");
  ExpectChainsHold();
}

TEST_F(CursorCapture, TheStrategyMayChange) {
  Captured({ByCursor("audit", "id")});
  source_->Execute("DELETE FROM audit WHERE id = 5");
  EXPECT_EQ(Captured({Snapshot("audit")}).deletions, 1);
  EXPECT_EQ(Value("SELECT strategy FROM tidemark.dataset"), "snapshot");
  EXPECT_EQ(Captured({ByCursor("audit", "id")}).outcome, MemberOutcome::kUnchanged);
  EXPECT_EQ(Value("SELECT strategy FROM tidemark.dataset"), "cursor");
  ExpectChainsHold();
}

// Sequence numbers are taken long before their rows are committed, so lower ones appear late.
TEST_F(CursorCapture, SixteenWritersWithDelayedCommitsLoseNoRow) {
  constexpr int kWriters = 16;
  constexpr int kRows = 100'000;
  constexpr int kCaptures = 5;  // at least so many while they write
  source_->Execute("CREATE TABLE events (id bigserial PRIMARY KEY, writer int, body text)");
  std::atomic<int> written{0}, captures{0};
  std::atomic<int> running{kWriters};
  std::vector<std::jthread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      auto line = pg::Connection::Open({.dsn = source_dsn_}, base::Deadline::After(30s));
      std::minstd_rand random(static_cast<unsigned>(w + 1));
      while (written < kRows || captures < kCaptures) {
        // Enough is written: slow captures are given no more than little to do.
        const int rows = written < kRows ? static_cast<int>(random() % 200 + 1) : 1;
        pg::Transaction tx(line);
        line.Execute("INSERT INTO events (writer, body) SELECT " + std::to_string(w) +
                     ", 'row ' || i FROM generate_series(1, " + std::to_string(rows) + ") i");
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
        if (random() % 20 == 0) continue;  // its numbers stay unused
        std::move(tx).Commit();
        written += rows;
      }
      --running;
    });
  }
  while (running > 0) {
    Captured({ByCursor("events", "id")});
    ++captures;
  }
  writers.clear();
  Captured({ByCursor("events", "id")});
  ExpectSame("SELECT count(*), min(id), max(id), sum(id), "
             "md5(string_agg(id || ':' || writer || body, ',' ORDER BY id)) FROM public.events");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark_history.d1"), "0");
  ExpectChainsHold();
}

}  // namespace
}  // namespace tidemark::tests
