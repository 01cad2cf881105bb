// What a live mirror tells: notifications in the publishing transaction, and its numbers.
#include <gmock/gmock.h>

#include "http/metrics.h"
#include "pg/notification_stream.h"
#include "temporal/event.h"
#include "temporal/measures.h"
#include "temporal/store.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class MirrorEvents : public MirrorFixture {
 protected:
  void SetUp() override {
    MirrorFixture::SetUp();
    source_->Execute(
        "CREATE TABLE orders (id int PRIMARY KEY, total int); "
        "CREATE TABLE \"Odd \"\"name\" (id int PRIMARY KEY); "
        "INSERT INTO orders SELECT i, i FROM generate_series(1, 100) i");
    temporal::Migrate(*store_);
  }
  std::string Metrics() {
    return http::MetricsPage(temporal::LoadMeasures(*store_), {});
  }
};

TEST_F(MirrorEvents, EachPublishNotifiesOfTheTablesThatItChangedAsTheViewShowsThem) {
  pg::NotificationStream heard(options_.store_dsn, temporal::kEventChannel,
                               base::Deadline::After(30s), {});
  Start();
  CatchUp();
  source_->Execute("UPDATE orders SET total = 0 WHERE id <= 3; DELETE FROM orders WHERE id = 4; "
                   "INSERT INTO \"Odd \"\"name\" VALUES (1)");
  CatchUp();
  source_->Execute("UPDATE orders SET total = 1 WHERE id = 1");
  CatchUp();
  store_->Execute("SET TimeZone = 'UTC'");
  const auto kept = temporal::LoadEvents(*store_, {}, 1000);
  EXPECT_FALSE(kept.more);
  // Two of the first copy, two of the first change, one of the second.
  ASSERT_EQ(kept.events.size(), 5U);
  // Those of one publish come in any order, since each is of another dataset.
  std::vector<std::string> told, kept_texts;
  for (const auto& event : kept.events) {
    kept_texts.push_back(event.text);
    told.push_back(heard.Next(base::Deadline::After(30s), {}).value_or("nothing"));
  }
  EXPECT_THAT(told, ::testing::UnorderedElementsAreArray(kept_texts));
  EXPECT_EQ(told.back(), kept_texts.back());
  EXPECT_EQ(heard.Next(base::Deadline::After(0s), {}), std::nullopt);
  EXPECT_EQ(kept.events[4].dataset, "public.orders");
  EXPECT_EQ(store_->Value("SELECT dataset || '|' || relation || '|' || journal || '|' || puts "
                          "|| '|' || deletions || '|' || rows FROM tidemark.event WHERE "
                          "basis = 2 AND relation = 'public.orders'"),
            "public.orders|public.orders|" + options_.name + "|3|1|99");
  EXPECT_EQ(store_->Value("SELECT \"position\"->>'lsn' = (SELECT lsn::text FROM tidemark.resume) "
                          "FROM tidemark.event ORDER BY basis DESC LIMIT 1"),
            "t");
}

TEST_F(MirrorEvents, TheNumbersAreTheStreams) {
  Start();
  CatchUp();
  const std::string mirror = "{mirror=\"" + options_.name + "\"} ";
  const std::string orders = "{dataset=\"public.orders\",journal=\"" + options_.name + "\"} ";
  EXPECT_THAT(Metrics(), HasSubstr("tidemark_mirror_readable" + mirror + "1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("tidemark_mirror_commits_total" + mirror + "1\n"));
  for (int i = 1; i <= 5; ++i) {
    source_->Execute("UPDATE orders SET total = total + 1 WHERE id <= 10");
  }
  source_->Execute("DELETE FROM orders WHERE id > 90");
  CatchUp();
  const auto text = Metrics();
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_commits_total" + mirror + "7\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_dataset_puts_total" + orders + "150\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_dataset_deletions_total" + orders + "10\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_dataset_rows" + orders + "90\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_basis_age_seconds" + mirror));
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_failures_total" + mirror + "0\n"));
  // Progress is written once a second.
  const auto deadline = base::Deadline::After(30s);
  for (const auto& awaited : {"tidemark_mirror_lag_bytes" + mirror + "0\n",
                              "tidemark_mirror_slot_retained_bytes" + mirror}) {
    while (!deadline.passed() && Metrics().find(awaited) == std::string::npos) {
      std::this_thread::sleep_for(20ms);
    }
  }
  EXPECT_THAT(Metrics(), HasSubstr("tidemark_mirror_up" + mirror + "1\n"));
  EXPECT_THAT(Metrics(), HasSubstr("tidemark_mirror_slot_retained_bytes" + mirror));
}

TEST_F(MirrorEvents, AStreamThatBreaksIsCountedOnceForEachTime) {
  Start();
  CatchUp();
  const auto deadline = base::Deadline::After(30s);
  const auto terminate = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                         "WHERE active_pid IS NOT NULL AND slot_name = '" +
                         capture::SlotNameFor(options_.name) + "'";
  while (!deadline.passed() && source_->Execute(terminate).rows() == 0) {
    std::this_thread::sleep_for(20ms);
  }
  const auto failed = "tidemark_mirror_failures_total{mirror=\"" + options_.name + "\"} 1\n";
  while (!deadline.passed() && Metrics().find(failed) == std::string::npos) {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(Metrics(), HasSubstr(failed));
  source_->Execute("UPDATE orders SET total = 7 WHERE id = 7");
  CatchUp();
  EXPECT_THAT(Metrics(), HasSubstr(failed));
}

}  // namespace
}  // namespace tidemark::tests
