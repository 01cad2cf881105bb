// Mirrors and cdc datasets on a cadence: the slot is drained to where the source stands and
// published in one basis with the other members, or not at all.
#include <set>

#include "base/child_process.h"
#include "source/postgres/slot.h"
#include "tests/capture/capture_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;

class Drain : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    source_->Execute(
        "CREATE TABLE orders (id int PRIMARY KEY, n int); "
        "CREATE TABLE notes (id int PRIMARY KEY, body text); "
        "CREATE TABLE prices (id int PRIMARY KEY, n int); "
        "INSERT INTO orders SELECT i, i FROM generate_series(1, 1000) i; "
        "INSERT INTO notes SELECT i, repeat('n', i) FROM generate_series(1, 50) i; "
        "INSERT INTO prices SELECT i, i FROM generate_series(1, 20) i; "
        "CREATE PUBLICATION shop FOR TABLE orders, notes");
  }
  void TearDown() override {
    for (const auto& slot : slots_) {
      source::DropSlot(*source_, slot, base::Deadline::After(20s));
    }
    CaptureFixture::TearDown();
  }

  /// Slots are of the whole cluster, so each test has its own.
  std::string SlotOf(const std::string& name) {
    const auto slot = "drain_" + name + "_" + source_->Value("SELECT current_database()");
    slots_.insert(slot);
    return slot;
  }
  capture::PlannedDataset Planned(capture::MirrorOptions mirror) {
    return {.name = mirror.name,
            .in_store = {},
            .strategy = temporal::Strategy::kCdc,
            .key = {},
            .cursor = "",
            .overlap = "",
            .source = mirror.name,
            .source_kind = "postgres",
            .open = nullptr,
            .mirror = mirror};
  }
  capture::PlannedDataset Mirror() {
    return Planned({.name = "shop",
                    .source_dsn = source_dsn_,
                    .store_dsn = "",
                    .publication = "shop",
                    .slot = SlotOf("shop")});
  }
  capture::PlannedDataset Cdc(const std::string& relation, const base::QualifiedName& place) {
    return Planned({.name = "shop." + relation,
                    .source_dsn = source_dsn_,
                    .store_dsn = "",
                    .publication = "only_" + relation,
                    .slot = SlotOf(relation),
                    .only = capture::MirrorOptions::Only{.relation = {"public", relation},
                                                         .in_store = place}});
  }
  std::string Confirmed(const std::string& name) {
    return source_->Value("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = "
                          "$1",
                          {SlotOf(name)});
  }

  std::set<std::string> slots_;
};

TEST_F(Drain, FirstCaptureCopiesTheMirrorIntoTheBasisOfAllMembers) {
  const auto report = Capture({Mirror(), Snapshot("prices")});
  ASSERT_TRUE(report.basis) << report.Failure()->Full();
  EXPECT_EQ(report.members[0].puts, 1050);
  EXPECT_EQ(report.members[0].live_rows, 1050);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "1");
  EXPECT_EQ(Rows("SELECT d.table_name FROM tidemark.basis_member m JOIN tidemark.dataset d "
                 "ON d.id = m.dataset ORDER BY 1"),
            "notes\norders\nprices\n");
  for (const char* table : {"orders", "notes", "prices"}) {
    ExpectSame(std::string("SELECT * FROM public.") + table + " ORDER BY id");
  }
  ExpectNothingLeftBehind();
}

TEST_F(Drain, LaterCapturesPublishEveryUpstreamCommitInTheOneBasis) {
  Captured({Mirror(), Snapshot("prices")});
  const auto before = Value("SELECT max(tx) FROM tidemark.tx t JOIN tidemark.journal j "
                            "ON j.id = t.journal WHERE j.name = 'shop'");
  source_->Execute("UPDATE orders SET n = n + 1 WHERE id <= 10");
  const auto between = source_->Value("SELECT pg_current_wal_insert_lsn()");
  source_->Execute("DELETE FROM orders WHERE id > 990; INSERT INTO notes VALUES (51, 'new')");
  source_->Execute("UPDATE prices SET n = 0 WHERE id = 1");
  const auto member = Captured({Mirror(), Snapshot("prices")});
  EXPECT_EQ(member.outcome, capture::MemberOutcome::kPublished);
  EXPECT_EQ(member.puts, 11);
  EXPECT_EQ(member.deletions, 10);
  EXPECT_EQ(member.live_rows, 1041);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "2");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx t JOIN tidemark.journal j ON j.id = t.journal "
                  "WHERE j.name = 'shop' AND t.tx > " + before),
            "2");
  for (const char* table : {"orders", "notes", "prices"}) {
    ExpectSame(std::string("SELECT * FROM public.") + table + " ORDER BY id");
  }
  // Between the two commits: both are in one basis, and each is its own moment all the same.
  EXPECT_EQ(Value("SELECT count(*) || ' ' || sum(n) FROM tidemark.as_of_tx(NULL::public.orders, "
                  "tidemark.tx_at_position('public.orders'::regclass, '" + between + "'))"),
            "1000 500510");
  EXPECT_EQ(AsOf("count(*)", "orders", 0), "1000\n");
  EXPECT_EQ(AsOf("count(*)", "orders", 1), "990\n");
}

TEST_F(Drain, WithoutChangesAdmitsTheVersionsAgainAndMovesTheSourcesPresent) {
  Captured({Mirror()});
  const auto version = Rows("SELECT dataset, hash FROM tidemark.version ORDER BY 1");
  source_->Execute("CREATE TABLE elsewhere (id int); INSERT INTO elsewhere VALUES (1)");
  const auto lsn = source_->Value("SELECT pg_current_wal_insert_lsn()");
  const auto member = Captured({Mirror()});
  EXPECT_EQ(member.outcome, capture::MemberOutcome::kUnchanged);
  EXPECT_EQ(Rows("SELECT dataset, hash FROM tidemark.version ORDER BY 1"), version);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis_member m WHERE NOT m.changed"), "2");
  EXPECT_EQ(Value("SELECT received_lsn >= '" + lsn + "' FROM tidemark.resume"), "t");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.event"), "2");  // of the first capture
}

TEST_F(Drain, ConfirmsTheSlotOnlyAfterTheBasisIsDurable) {
  Captured({Mirror()});
  source_->Execute("INSERT INTO orders VALUES (5000, 1)");
  const auto committed = source_->Value("SELECT pg_current_wal_insert_lsn()");
  // The other member fails: nothing of the capture is published, and the slot stays.
  source_->Execute("ALTER TABLE prices DROP CONSTRAINT prices_pkey; INSERT INTO prices VALUES (1, "
                   "1)");
  const auto before = Confirmed("shop");
  EXPECT_EQ(Refused({Mirror(), Snapshot("prices")}).state(), base::kUniqueViolation);
  EXPECT_EQ(Confirmed("shop"), before);
  EXPECT_EQ(Value("SELECT count(*) FROM public.orders WHERE id = 5000"), "0");
  const auto report = Capture({Mirror(), Snapshot("prices")}, /*keep_going=*/true);
  ASSERT_TRUE(report.basis);
  EXPECT_EQ(Value("SELECT count(*) FROM public.orders WHERE id = 5000"), "1");
  const auto deadline = base::Deadline::After(20s);
  while (!deadline.passed() && source_->Value("SELECT confirmed_flush_lsn < '" + committed +
                                              "' FROM pg_replication_slots WHERE slot_name = '" +
                                              SlotOf("shop") + "'") == "t") {
    base::WaitReadable({}, base::Deadline::After(20ms), {});
  }
  EXPECT_EQ(source_->Value("SELECT confirmed_flush_lsn >= '" + committed +
                           "' FROM pg_replication_slots WHERE slot_name = '" + SlotOf("shop") +
                               "'"),
            "t");
}

TEST_F(Drain, FailingFirstCaptureOfAnotherMemberLeavesNeitherSlotNorTables) {
  source_->Execute("ALTER TABLE prices DROP CONSTRAINT prices_pkey; INSERT INTO prices VALUES (1, "
                   "1)");
  EXPECT_EQ(Refused({Mirror(), Snapshot("prices")}).state(), base::kUniqueViolation);
  EXPECT_EQ(source_->Value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '" +
                           SlotOf("shop") + "'"),
            "0");
  EXPECT_EQ(Value("SELECT to_regclass('public.orders') IS NULL"), "t");
  source_->Execute("DELETE FROM prices WHERE id = 1");
  Captured({Mirror(), Snapshot("prices")});
  ExpectSame("SELECT * FROM public.orders ORDER BY id");
}

TEST_F(Drain, BacklogLargerThanABatchIsOneBasisWithEachCommitOfItsOwn) {
  Captured({Mirror()});
  source_->Execute(
      "DO $$ BEGIN FOR i IN 1..500 LOOP UPDATE public.orders SET n = n + 1 WHERE id <= 100; "
      "COMMIT; END LOOP; END $$");
  const auto member = Captured({Mirror()});
  EXPECT_EQ(member.puts, 50'000);
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.basis"), "2");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.tx"), "501");
  ExpectSame("SELECT * FROM public.orders ORDER BY id");
  EXPECT_EQ(Value("SELECT count(*) FROM public_history.orders WHERE id = 7"), "501");
}

TEST_F(Drain, OneTableUnderANameOfItsOwnIsACdcDataset) {
  Captured({Cdc("notes", {"kept", "remarks"})});
  EXPECT_EQ(source_->Value("SELECT tablename FROM pg_publication_tables WHERE pubname = "
                           "'only_notes'"),
            "notes");
  source_->Execute("UPDATE notes SET body = 'changed' WHERE id = 3; DELETE FROM orders WHERE id = "
                   "1");
  const auto member = Captured({Cdc("notes", {"kept", "remarks"})});
  EXPECT_EQ(member.puts, 1);
  EXPECT_EQ(Rows("SELECT * FROM kept.remarks ORDER BY id"),
            Rows(*source_, "SELECT * FROM public.notes ORDER BY id"));
  EXPECT_EQ(Rows("SELECT DISTINCT dataset, relation FROM tidemark.event"),
            "shop.notes|kept.remarks\n");
  EXPECT_EQ(Value("SELECT to_regclass('public.orders') IS NULL"), "t");
  source_->Execute("DROP PUBLICATION only_notes");
}

TEST_F(Drain, DatasetThatIsNotPublishedOrNotThereIsRefusedByName) {
  auto missing = Cdc("nowhere", {"kept", "nowhere"});
  EXPECT_THAT(Refused({missing}).message(), HasSubstr("no such table"));
  auto unpublished = Cdc("prices", {"kept", "prices"});
  unpublished.mirror->publication = "shop";
  EXPECT_THAT(Refused({unpublished}).message(), HasSubstr("does not publish it"));
}

TEST_F(Drain, NameOfADatasetCapturedAnotherWayIsRefused) {
  Captured({Snapshot("prices")});
  auto taken = Cdc("prices", {"kept", "prices"});
  taken.name = taken.mirror->name = "public.prices";
  EXPECT_EQ(Refused({taken}).state(), base::kDuplicateObject);
  auto place = Cdc("prices", {"public", "prices"});
  EXPECT_EQ(Refused({place}).state(), base::kDuplicateObject);
}

TEST_F(Drain, MirrorThatIsFollowedLiveIsRefused) {
  Captured({Mirror()});
  auto follower = temporal::OpenStore(store_dsn_, base::Deadline::After(20s));
  const auto lease = temporal::Lease::Take(follower, "shop", {});
  EXPECT_EQ(Refused({Mirror()}).state(), base::kObjectInUse);
}

TEST_F(Drain, LostSlotIsMadeGoodByReadingEveryTableAgain) {
  Captured({Mirror()});
  source::DropSlot(*source_, SlotOf("shop"), base::Deadline::After(20s));
  source_->Execute("DELETE FROM orders WHERE id <= 10; UPDATE notes SET body = 'x' WHERE id = 1");
  const auto member = Captured({Mirror(), Snapshot("prices")});
  EXPECT_EQ(member.puts, 1);
  EXPECT_EQ(member.deletions, 10);
  ExpectSame("SELECT * FROM public.orders ORDER BY id");
  ExpectSame("SELECT * FROM public.notes ORDER BY id");
  EXPECT_EQ(Value("SELECT count(*) FROM tidemark.resync WHERE ended_at IS NOT NULL"), "2");
  EXPECT_EQ(AsOf("count(*)", "orders", 0), "1000\n");
  source_->Execute("INSERT INTO orders VALUES (7000, 1)");
  EXPECT_EQ(Captured({Mirror()}).puts, 1);
  ExpectNothingLeftBehind();
}

TEST_F(Drain, SlotThatIsLostIsLeftToAPersonWhereSoDeclared) {
  Captured({Mirror()});
  source::DropSlot(*source_, SlotOf("shop"), base::Deadline::After(20s));
  auto mirror = Mirror();
  mirror.mirror->resync_on_gap = false;
  EXPECT_EQ(Refused({mirror}).state(), base::kUndefinedObject);
  EXPECT_EQ(Value("SELECT problems::text LIKE '%does not exist any more%' FROM tidemark.progress"),
            "t");
}

TEST_F(Drain, ATableThatTheStoreRefusesStandsStillAndTheOthersAreDrained) {
  auto mirror = Mirror();
  mirror.mirror->isolate_failed_tables = true;
  Captured({mirror});
  const auto current = Value("SELECT 'tidemark_current.d' || id FROM tidemark.dataset "
                             "WHERE table_name = 'orders'");
  store_->Execute("ALTER TABLE " + current + " ADD CONSTRAINT few CHECK (n < 5000)");
  source_->Execute("UPDATE orders SET n = 5000 WHERE id = 1; UPDATE notes SET body = '' WHERE id = "
                   "1");
  Captured({mirror});
  ExpectSame("SELECT * FROM public.notes ORDER BY id");
  EXPECT_EQ(Value("SELECT n FROM public.orders WHERE id = 1"), "1");
  EXPECT_THAT(Value("SELECT problems FROM tidemark.progress p JOIN tidemark.journal j "
                    "ON j.id = p.journal WHERE j.name = 'shop'"),
              testing::AllOf(HasSubstr("public.orders"), HasSubstr("few")));
  // So it is for as long as that lasts.
  source_->Execute("DELETE FROM notes WHERE id = 2; DELETE FROM orders WHERE id = 2");
  Captured({mirror});
  ExpectSame("SELECT * FROM public.notes ORDER BY id");
  EXPECT_EQ(Value("SELECT count(*) FROM public.orders"), "1000");
  store_->Execute("ALTER TABLE " + current + " DROP CONSTRAINT few");
  Captured({mirror});
  ExpectSame("SELECT * FROM public.orders ORDER BY id");
  EXPECT_EQ(Value("SELECT problems FROM tidemark.progress p JOIN tidemark.journal j "
                  "ON j.id = p.journal WHERE j.name = 'shop'"),
            "[]");
}

TEST_F(Drain, RowsThatWereRewrittenUnderTheirTypeAreReadWhole) {
  Captured({Mirror()});
  source_->Execute("ALTER TABLE orders ALTER id TYPE int USING id + 5000");
  source_->Execute("UPDATE orders SET n = 0 WHERE id = 5001");
  Captured({Mirror()});
  ExpectSame("SELECT * FROM public.orders ORDER BY id");
}

TEST_F(Drain, AFamilyOfTablesIsFollowedOnACadence) {
  const std::string all = "SELECT count(*), md5(string_agg(o::text, ',' ORDER BY id)) FROM public.orders o";
  source_->Execute("CREATE TABLE heirs (PRIMARY KEY (id)) INHERITS (orders); "
                   "INSERT INTO heirs SELECT i, i FROM generate_series(2001, 2010) i; "
                   "ALTER PUBLICATION shop ADD TABLE heirs");
  Captured({Mirror()});
  ExpectSame(all);
  source_->Execute("UPDATE orders SET n = n + 1; ALTER TABLE orders ADD z int DEFAULT 4");
  Captured({Mirror()});
  ExpectSame(all);
  source_->Execute("ALTER TABLE heirs NO INHERIT orders; ALTER TABLE heirs DROP z; "
                   "UPDATE heirs SET n = 0");
  Captured({Mirror()});
  ExpectSame(all);
  ExpectSame("SELECT * FROM public.heirs ORDER BY id");
  source_->Execute("ALTER TABLE heirs ADD z int; ALTER TABLE heirs INHERIT orders");
  Captured({Mirror()});
  ExpectSame(all);
  EXPECT_EQ(AsOf("count(*), sum(n)", "orders", 0), "1010|520555\n");
  EXPECT_EQ(AsOf("count(*), sum(n), sum(z)", "orders", 1), "1010|521565|4040\n");
  EXPECT_EQ(AsOf("count(*)", "orders", 2), "1000\n");
}

}  // namespace
}  // namespace tidemark::tests
