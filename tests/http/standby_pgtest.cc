// Events from a hot standby of the store, on which nobody can listen, before and after it takes
// over.
#include "tests/http/http_fixture.h"
#include "tests/standby.h"

namespace tidemark::tests {
namespace {

class HttpStandby : public HttpFixture {};

TEST_F(HttpStandby, EventsAreToldFromAStandbyAndGoOnWhenItTakesOver) {
  Cluster primary;
  store_dsn_ = primary.CreateDatabase("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  temporal::Migrate(*store_);
  CaptureChange();
  Standby standby(primary);
  const auto primary_dsn = store_dsn_;
  store_dsn_ = standby.Dsn("kept");
  EventReader reader(port(), "", "0-0");  // of a server before the standby
  EXPECT_EQ(reader.head().status, 200);
  ASSERT_TRUE(reader.Await(1));

  store_dsn_ = primary_dsn;
  CaptureChange();
  CaptureChange();
  ASSERT_TRUE(reader.Await(3));
  EXPECT_EQ(Metric("tidemark_last_basis"), 3);
  // A standby may still be about to receive what the reader has seen elsewhere.
  EXPECT_EQ(EventReader(port(), "", "99-1").head().status, 200);

  primary.Stop();
  standby.Promote();
  store_dsn_ = standby.Dsn("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  CaptureChange();
  ASSERT_TRUE(reader.Await(4));
  EXPECT_EQ(reader.ids(), KeptIds());
  EXPECT_TRUE(Becomes([&] {
    return Value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == "1";
  }));
}

}  // namespace
}  // namespace tidemark::tests
