// GET /v1/events and what it rests on: every change once, in order, whatever happens in between.
#include <algorithm>
#include <atomic>
#include <random>

#include "gateway/listener.h"
#include "pg/notification_stream.h"
#include "temporal/event.h"
#include "tests/http/http_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class HttpEvents : public HttpFixture {};

TEST_F(HttpEvents, AChangeIsToldWithAllThatIsKnownOfIt) {
  EventReader reader(port());
  EXPECT_EQ(reader.head().status, 200);
  EXPECT_EQ(reader.head().headers.at("content-type"), "text/event-stream");
  const auto member = Captured({Snapshot("items")});
  ASSERT_TRUE(reader.Await(1));
  const auto event = json::parse(reader.data()[0]);
  EXPECT_EQ(event["id"], reader.ids()[0]);
  EXPECT_EQ(event["kind"], "dataset.changed");
  EXPECT_EQ(event["basis"], 1);
  EXPECT_EQ(event["dataset"], "public.items");
  EXPECT_EQ(event["relation"], "public.items");
  EXPECT_EQ(event["journal"], "public.items");
  EXPECT_EQ(event["version"], member.version);
  EXPECT_EQ(event["rows"], 10);
  EXPECT_EQ(event["puts"], 10);
  EXPECT_EQ(event["deletions"], 0);
  EXPECT_TRUE(event["position"].contains("lsn")) << event;
  EXPECT_EQ(Value("SELECT '" + event["system_time"].get<std::string>() +
                  "'::timestamptz = (SELECT system_time FROM tidemark.basis)"),
            "t");
}

TEST_F(HttpEvents, AnUnchangedCaptureIsNoEvent) {
  Captured({Snapshot("items")});
  EventReader reader(port());
  Captured({Snapshot("items")});
  const auto id = CaptureChange();
  ASSERT_TRUE(reader.Await(1));
  EXPECT_THAT(reader.ids(), ElementsAre(id));
  EXPECT_THAT(KeptIds(), SizeIs(2));
}

TEST_F(HttpEvents, WithoutAnIdItStartsWithWhatComesNextAndWithOneExactlyAfterIt) {
  const auto first = CaptureChange();
  const auto second = CaptureChange();
  EventReader next(port());
  EventReader after(port(), "", first);
  EventReader by_query(port(), "?last_event_id=" + second);
  EventReader all(port(), "", "0-0");
  const auto third = CaptureChange();
  ASSERT_TRUE(next.Await(1) && after.Await(2) && by_query.Await(1) && all.Await(3));
  EXPECT_THAT(next.ids(), ElementsAre(third));
  EXPECT_THAT(after.ids(), ElementsAre(second, third));
  EXPECT_THAT(by_query.ids(), ElementsAre(third));
  EXPECT_THAT(all.ids(), ElementsAre(first, second, third));
}

TEST_F(HttpEvents, WhatHappensBetweenTwoConnectionsIsNotMissedEvenIfNothingHadBeenRead) {
  CaptureChange();
  EventReader reader(port());
  reader.Await(1, base::Deadline::After(1s));  // nothing but where it stands
  EXPECT_EQ(reader.last_id(), KeptIds().back());
  reader.Drop();
  const auto id = CaptureChange();
  reader.Connect();
  ASSERT_TRUE(reader.Await(1));
  EXPECT_THAT(reader.ids(), ElementsAre(id));
}

TEST_F(HttpEvents, ADatasetCanBeChosenByName) {
  Captured({Snapshot("items"), Snapshot("more")});
  EventReader live(port(), "?dataset=public.more");
  EventReader past(port(), "?dataset=public.more", "0-0");
  CaptureChange();
  source_->Execute("INSERT INTO more VALUES (2, 2)");
  Captured({Snapshot("more")});
  ASSERT_TRUE(live.Await(1) && past.Await(2));
  EXPECT_EQ(json::parse(live.data()[0])["dataset"], "public.more");
  EXPECT_EQ(past.ids(), KeptIds("dataset = 'public.more'"));
}

TEST_F(HttpEvents, AHeartbeatShowsThatTheLineIsOpenAndMovesTheIdAlong) {
  options_.heartbeat = 50ms;
  EventReader reader(port(), "?dataset=nothing.at_all");
  const auto id = CaptureChange();
  EXPECT_TRUE(Becomes([&] {
    reader.Await(1, base::Deadline::After(100ms));
    return reader.heartbeats() > 2 && reader.last_id() == id;
  }));
  EXPECT_TRUE(reader.ids().empty());
}

TEST_F(HttpEvents, AnIdFromBeforeWhatIsKeptIsGoneAndOneFromTheFutureAConflict) {
  const auto first = CaptureChange();
  const auto second = CaptureChange();
  CaptureChange();
  store_->Execute("DELETE FROM tidemark.basis_member WHERE basis <= 2");
  EventReader gone(port(), "", first);
  EXPECT_EQ(gone.head().status, 410);
  EXPECT_EQ(gone.head().headers.at("content-type"), "application/problem+json");
  EXPECT_EQ(EventReader(port(), "", "0-0").head().status, 410);
  // Nothing after this one is missing.
  EventReader kept(port(), "", second);
  ASSERT_TRUE(kept.Await(1));
  EXPECT_THAT(kept.ids(), ElementsAre(KeptIds().back()));
  EXPECT_EQ(EventReader(port(), "", "99-1").head().status, 409);
  EXPECT_EQ(EventReader(port(), "", "nonsense").head().status, 400);
}

TEST_F(HttpEvents, FiftyReadersAllGetEverythingAndOneTooManyIsTurnedAway) {
  options_.subscribers_max = 50;
  std::vector<std::unique_ptr<EventReader>> readers;
  for (int i = 0; i < 50; ++i) readers.push_back(std::make_unique<EventReader>(port()));
  const auto refused = Get("/v1/events");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.count("retry-after"), 1U);
  for (int i = 0; i < 20; ++i) CaptureChange();
  const auto kept = KeptIds();
  for (auto& reader : readers) {
    ASSERT_TRUE(reader->Await(20));
    EXPECT_EQ(reader->ids(), kept);
  }
  EXPECT_EQ(Metric("tidemark_http_subscribers"), 50);
  EXPECT_EQ(Metric("tidemark_http_events_sent_total"), 1000);
  // A place becomes free when its reader goes.
  readers.pop_back();
  EXPECT_TRUE(Becomes([&] { return EventReader(port()).head().status == 200; }));
}

/// Members as a publish writes them, one event each, with `bytes` of position.
void InventEvents(pg::Connection& store, int from, int to, int bytes) {
  store.Execute(
      "INSERT INTO tidemark.basis_member (basis, dataset, version, tx, accepted_at, live_rows, "
      "puts, deletions, \"position\") SELECT b, 1, '\\x00', b, clock_timestamp(), 1, 1, 0, "
      "jsonb_build_object('filler', repeat('x', $3::int)) "
      "FROM generate_series($1::bigint, $2::bigint) b",
      {std::to_string(from), std::to_string(to), std::to_string(bytes)});
}

TEST_F(HttpEvents, WhoIsFarBehindReadsFromTheStoreUpToThePresent) {
  options_.ring_bytes_max = 50'000;
  Captured({Snapshot("items")});
  EventReader early(port());
  InventEvents(*store_, 100, 2099, 100);
  EventReader late(port(), "", "1-1");
  EventReader filtered(port(), "?dataset=public.items", "0-0");
  ASSERT_TRUE(early.Await(2000) && late.Await(2000) && filtered.Await(2001));
  const auto kept = KeptIds();
  EXPECT_EQ(filtered.ids(), kept);
  EXPECT_EQ(late.ids(), std::vector<std::string>(kept.begin() + 1, kept.end()));
  EXPECT_EQ(early.ids(), late.ids());
}

TEST_F(HttpEvents, AReaderThatTakesNothingIsCutAndTheOthersNoticeNothing) {
  options_.write_timeout = 1s;
  Captured({Snapshot("items")});
  EventReader lazy(port(), "", "", 4096);
  EventReader eager(port());
  // More than the kernel's buffers on both sides hold.
  for (int i = 0; i < 40; ++i) {
    InventEvents(*store_, 100 + 10 * i, 109 + 10 * i, 100'000);
    store_->Execute("NOTIFY tidemark_events");
    ASSERT_TRUE(eager.Await(10 * static_cast<size_t>(i + 1)));
  }
  EXPECT_TRUE(Becomes([&] { return Metric("tidemark_http_slow_readers_cut_total") == 1; }));
  EXPECT_EQ(Metric("tidemark_http_subscribers"), 1);
  EXPECT_FALSE(lazy.Await(400));
}

TEST_F(HttpEvents, NothingIsLostOrOutOfOrderOverDroppedLinesAndRestartsOfTheStore) {
  Cluster cluster;
  store_dsn_ = cluster.CreateDatabase("kept");
  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  temporal::Migrate(*store_);
  Captured({Snapshot("items")});
  const auto http_port = port();

  std::atomic<bool> done = false;
  std::atomic<int> published = 0;
  // Captures go on all the time; those that a restart hits fail and are tried again.
  std::jthread capturing([&] {
    auto source = pg::Connection::Open({.dsn = source_dsn_}, base::Deadline::After(30s));
    for (int i = 0; !done; ++i) {
      source.Execute("UPDATE items SET name = 'x" + std::to_string(i) + "' WHERE id = 2");
      try {
        const auto report = Capture({Snapshot("items"), Snapshot("more")}, true);
        if (report.basis) ++published;
      } catch (const base::Error& error) {
        EXPECT_TRUE(error.IsTransient() || error.state() == base::kCommitOutcomeUnknown)
            << error.Full();
      }
    }
  });
  EventReader reader(http_port);    // drops its line again and again
  EventReader faithful(http_port);  // never does
  std::mt19937 random(7);
  size_t connections = 1;
  std::jthread reading([&] {
    while (!done) {
      const auto more = random() % 5;
      reader.Await(reader.ids().size() + more, base::Deadline::After(200ms));
      reader.Drop();
      do {
        try {
          reader.Connect();
          ++connections;
        } catch (const std::runtime_error&) {
        }
      } while (reader.head().status != 200 && !done);
    }
  });
  for (const char* how : {"fast", "immediate", "fast", "immediate"}) {
    const int before = published;
    ASSERT_TRUE(Becomes([&] { return published >= before + 10; }));
    cluster.Stop(how);
    std::this_thread::sleep_for(300ms);
    cluster.Start();
  }
  const int before = published;
  ASSERT_TRUE(Becomes([&] { return published >= before + 10; }));
  done = true;
  capturing.join();
  reading.join();

  store_.emplace(temporal::OpenStore(store_dsn_, base::Deadline::After(30s)));
  auto kept = KeptIds();
  ASSERT_GT(kept.size(), 50U);
  if (reader.head().status != 200 || !reader.IsConnected()) reader.Connect();
  // The first capture, with one event, was before they came.
  kept.erase(kept.begin());
  EXPECT_TRUE(faithful.Await(kept.size()));
  EXPECT_TRUE(reader.Await(kept.size()));
  EXPECT_EQ(faithful.ids(), kept);
  EXPECT_EQ(reader.ids(), kept);
  EXPECT_GT(connections, 10U);
}

TEST_F(HttpEvents, AStoreThatWasSetBackEndsTheStreamsSoThatNobodyWaitsForWhatHasBeen) {
  Captured({Snapshot("items")});
  for (int i = 0; i < 3; ++i) CaptureChange();
  EventReader reader(port(), "", "0-0");
  ASSERT_TRUE(reader.Await(4));
  ASSERT_TRUE(Becomes([&] { return LogText().find("following the store") != std::string::npos; }));
  // As if restored to an earlier state, behind the server's back.
  store_->Execute("DELETE FROM tidemark.basis_member WHERE basis > 2; "
                  "UPDATE tidemark.event_horizon SET basis = 0, dataset = 0");
  store_->Execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                  "WHERE datname = current_database() AND pid <> pg_backend_pid()");
  EXPECT_FALSE(reader.Await(5));
  EXPECT_FALSE(reader.IsConnected());
  reader.Connect();
  EXPECT_EQ(reader.head().status, 409);
}

TEST_F(HttpEvents, ReadersMaySeeThemInSqlAndAnnounceNone) {
  CaptureChange();
  store_->Execute("SET ROLE tidemark_reader");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.event"), "1");
  EXPECT_EQ(json::parse(Value("SELECT tidemark.event_text(e) FROM tidemark.event e"))["rows"], 10);
  EXPECT_THROW(store_->Execute("SELECT tidemark.announce('x', 1, 1)"), base::Error);
  store_->Execute("RESET ROLE");
}

TEST_F(HttpEvents, AStopEndsTheStreamsProperly) {
  EventReader reader(port());
  Stop();
  EXPECT_TRUE(reader.client().Ends());
  EXPECT_TRUE(reader.client().buffer().ends_with("0\r\n\r\n"));
}

TEST_F(HttpEvents, ListeningThroughTheGatewayDelivers) {
  auto& cluster = Cluster::Shared();
  gateway::Options gateway_options;
  gateway_options.listen_port = 0;
  gateway_options.store = {.host = cluster.host(), .port = static_cast<uint16_t>(cluster.port())};
  gateway::Listener listener(gateway_options);
  const std::jthread thread([&](std::stop_token stop) { listener.Run(stop); });
  const auto database = Value("SELECT current_database()");
  pg::NotificationStream heard("host=127.0.0.1 port=" + std::to_string(listener.port()) +
                                   " user=postgres dbname=" + database,
                               temporal::kEventChannel, base::Deadline::After(30s), {});
  Captured({Snapshot("items"), Snapshot("more")});
  // Each member by itself, as the view shows it.
  for (const char* dataset : {"public.items", "public.more"}) {
    const auto payload = heard.Next(base::Deadline::After(30s), {});
    ASSERT_TRUE(payload);
    EXPECT_EQ(*payload, Value("SELECT tidemark.event_text(e) FROM tidemark.event e "
                              "WHERE dataset = '" +
                              std::string(dataset) + "'"));
  }
  Captured({Snapshot("items")});  // unchanged
  const auto id = CaptureChange();
  EXPECT_EQ(json::parse(*heard.Next(base::Deadline::After(30s), {}))["id"], id);
}

TEST_F(HttpEvents, AnEventTooLongForANotificationIsNamedOnlyAndToldWholeByHttp) {
  const std::string long_name = "public." + std::string(9000, 'n');
  auto planned = Snapshot("items");
  planned.name = long_name;
  pg::NotificationStream heard(store_dsn_, temporal::kEventChannel, base::Deadline::After(30s), {});
  EventReader reader(port());
  Captured({planned});
  const auto payload = json::parse(*heard.Next(base::Deadline::After(30s), {}));
  EXPECT_EQ(payload.size(), 2U);
  EXPECT_EQ(payload["kind"], "dataset.changed");
  ASSERT_TRUE(reader.Await(1));
  EXPECT_EQ(json::parse(reader.data()[0])["dataset"], long_name);
  EXPECT_EQ(payload["id"], reader.ids()[0]);
}

TEST_F(HttpEvents, AHalfFullNotificationQueueStopsNoPublishAndEventsComeAllTheSame) {
  // PostgreSQL says so of its queue, in this database only.
  store_->Execute("SET allow_system_table_mods = on; "
                  "CREATE OR REPLACE FUNCTION pg_catalog.pg_notification_queue_usage() "
                  "RETURNS double precision LANGUAGE sql AS 'SELECT 0.9::float8'");
  pg::NotificationStream heard(store_dsn_, temporal::kEventChannel, base::Deadline::After(30s), {});
  EventReader reader(port());
  const auto id = CaptureChange();
  ASSERT_TRUE(reader.Await(1));
  EXPECT_THAT(reader.ids(), ElementsAre(id));
  EXPECT_EQ(heard.Next(base::Deadline::After(0s), {}), std::nullopt);
  EXPECT_EQ(Metric("tidemark_store_notification_queue_usage_ratio"), 0.9);
}

}  // namespace
}  // namespace tidemark::tests
