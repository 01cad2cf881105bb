#include "capture/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "pg/relation.h"
#include "temporal/dataset.h"
#include "temporal/plane.h"
#include "temporal/store.h"
#include "tests/cluster.h"
#include "tests/impatient_server.h"

namespace tidemark::capture {
namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = RowDifference::Kind;

// _to of current rows.
const std::string kForever = "9223372036854775807";

// A source, and a mirror of it that is written by hand: tx 1 holds everything received.
class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    static int number = 0;
    const std::string name = fmt::format("verify_{}", ++number);
    request_.source_dsn = tests::Cluster::SharedSource().CreateDatabase(name);
    request_.store_dsn = tests::Cluster::Shared().CreateDatabase(name + "_store");
    request_.deadline = Deadline::After(seconds(30));
    source_ = Open(request_.source_dsn);
    store_ = temporal::OpenStore(request_.store_dsn, request_.deadline);
    temporal::Migrate(*store_);
    store_->Execute(
        "INSERT INTO tidemark.source (name) VALUES ('s');"
        "INSERT INTO tidemark.journal (name, source) SELECT 'm', id FROM tidemark.source;"
        "INSERT INTO tidemark.tx (journal, tx, end_lsn, source_time) VALUES (1, 1, '0/1', now()),"
        " (1, 2, 'FFFFFFFF/FFFFFFF0', now())");
    request_.journal = 1;
    Receive("FFFFFFFF/FFFFFFFF");
  }

  static pg::Connection Open(const std::string& dsn) {
    return pg::Connection::Open({.dsn = dsn, .settings = {{"search_path", ""}}},
                                Deadline::After(seconds(10)));
  }

  void Receive(const std::string& lsn) {
    store_->Execute(
        fmt::format("INSERT INTO tidemark.resume VALUES (1, '{0}', '{0}', now(), 1, 1, now())"
                    " ON CONFLICT (journal) DO UPDATE SET received_lsn = excluded.received_lsn",
                    lsn));
  }

  // Runs on the source, then copies the table's shape and the rows of `rows_sql` to the store.
  void Mirror(const std::string& table, const std::string& ddl, const std::string& rows_sql,
              const std::string& filter = "") {
    source_->Execute(ddl);
    const auto oid = static_cast<pg::Oid>(
        std::stoul(source_->Value("SELECT $1::regclass::oid", {"public." + table})));
    const auto upstream = pg::LoadRelations(*source_, std::vector<pg::Oid>{oid}).at(0);
    temporal::Dataset dataset;
    dataset.journal = 1;
    dataset.name = upstream.name;
    dataset.source_oid = oid;
    dataset.key_columns = upstream.KeyColumns();
    dataset.keying =
        dataset.key_columns.empty() ? temporal::Keying::kAppend : temporal::Keying::kKey;
    dataset.row_filter = filter;
    for (const auto& c : upstream.columns) {
      if (!c.generated) {
        dataset.columns.push_back({.number = c.number,
                                   .source_number = c.number,
                                   .name = c.name,
                                   .source_type = c.type,
                                   .type_modifier = c.modifier,
                                   .type_sql = c.type_sql});
      }
    }
    temporal::StoreDataset(*store_, dataset);
    temporal::CreateCurrent(*store_, dataset, upstream, 1);
    store_->Execute(
        fmt::format("INSERT INTO {} SELECT 1, {}, v.* FROM ({}) AS v", dataset.Current(), kForever,
                    rows_sql));
    pg::Transaction transaction(*store_);
    temporal::Attach(*store_, dataset, upstream, 1);
    std::move(transaction).Commit();
    current_ = dataset.Current();
  }

  TableComparison OnlyTable() {
    const auto verification = Verify(request_);
    EXPECT_EQ(verification.tables.size(), 1U);
    return verification.tables.at(0);
  }

  static std::vector<std::string> Said(const TableComparison& table) {
    std::vector<std::string> lines;
    for (const auto& difference : table.differences) lines.push_back(difference.Describe());
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  VerifyRequest request_;
  std::optional<pg::Connection> source_, store_;
  std::string current_;
};

constexpr const char* kRows =
    "SELECT i AS id, i::text AS a, i / 7.0::float8 AS b"
    " FROM generate_series(1, 1000) i";

TEST_F(VerifyTest, EqualTablesAreEqual) {
  Mirror("t",
         fmt::format("CREATE TABLE public.t (id int PRIMARY KEY, a text, b float8);"
                     "INSERT INTO public.t {}",
                     kRows),
         kRows);
  const auto table = OnlyTable();
  EXPECT_TRUE(table.equal);
  EXPECT_EQ(table.source_count, 1000);
  EXPECT_EQ(table.mirror_count, 1000);
  EXPECT_THAT(table.not_compared, IsEmpty());
  // The walsender takes its slot with it when it ends, a moment after its line was closed.
  const std::string slots =
      "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'tidemark_verify%'";
  const auto deadline = base::Deadline::After(std::chrono::seconds(30));
  while (!deadline.passed() && source_->Value(slots) != "0") {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(source_->Value(slots), "0");
}

TEST_F(VerifyTest, ServersThatEndWhatTakesLongOrIsIdleAreWaitedForAllTheSame) {
  Mirror("t",
         fmt::format("CREATE TABLE public.t (id int PRIMARY KEY, a text, b float8);"
                     "INSERT INTO public.t {}",
                     kRows),
         kRows);
  auto older = Open(request_.source_dsn);
  older.Execute("BEGIN; SELECT txid_current()");
  tests::MakeImpatient(*source_, milliseconds(150));
  tests::MakeImpatient(*store_, milliseconds(150));
  std::jthread ending([&] {
    std::this_thread::sleep_for(milliseconds(800));
    older.Execute("COMMIT");
  });
  EXPECT_TRUE(OnlyTable().equal);
}

TEST_F(VerifyTest, EachKindOfDifferenceIsNamed) {
  Mirror("t",
         fmt::format("CREATE TABLE public.t (id int PRIMARY KEY, a text, b float8);"
                     "INSERT INTO public.t {}",
                     kRows),
         kRows);
  store_->Execute("DELETE FROM " + current_ + " WHERE id = 7");
  store_->Execute("INSERT INTO " + current_ + " VALUES (1, " + kForever + ", 2000, NULL, 0)");
  store_->Execute("UPDATE " + current_ + " SET a = '', b = -b WHERE id = 9");
  const auto table = OnlyTable();
  EXPECT_FALSE(table.equal);
  EXPECT_THAT(Said(table),
              ElementsAre("key (2000): only in the mirror", "key (7): missing in the mirror",
                          "key (9): different row (columns a, b)"));
}

TEST_F(VerifyTest, FewDifferencesAreFoundInALargeTable) {
  const std::string rows = "SELECT i AS id, i % 10 AS a FROM generate_series(1, 200000) i";
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY, a int); INSERT INTO public.t " + rows,
         rows);
  store_->Execute("UPDATE " + current_ + " SET a = NULL WHERE id IN (5, 100000)");
  EXPECT_THAT(Said(OnlyTable()), ElementsAre("key (100000): different row (columns a)",
                                             "key (5): different row (columns a)"));
  store_->Execute("UPDATE " + current_ + " SET a = -1");
  EXPECT_EQ(OnlyTable().differences.size(), 10U);
}

TEST_F(VerifyTest, RowsWithoutKeyAreComparedAsMultiset) {
  Mirror("t",
         "CREATE TABLE public.t (a int, b text); INSERT INTO public.t VALUES (1, 'x'),"
         " (1, 'x'), (2, NULL)",
         "VALUES (1, 'x'), (2, NULL), (2, NULL)");
  const auto table = OnlyTable();
  EXPECT_FALSE(table.equal);
  EXPECT_THAT(Said(table),
              ElementsAre("key (1,x): missing in the mirror", "key (2,): only in the mirror"));
}

TEST_F(VerifyTest, RowFilterAndGeneratedColumnsAreObeyed) {
  Mirror("t",
         "CREATE TABLE public.t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id) STORED);"
         "INSERT INTO public.t VALUES (1), (20), (30)",
         "VALUES (20)", "(id > 10)");
  const auto table = OnlyTable();
  EXPECT_EQ(table.source_count, 2);
  EXPECT_THAT(Said(table), ElementsAre("key (30): missing in the mirror"));
}

TEST_F(VerifyTest, ChildrenOfInheritanceAreNotCounted) {
  Mirror("t",
         "CREATE TABLE public.t (id int PRIMARY KEY); CREATE TABLE public.c ()"
         " INHERITS (public.t); INSERT INTO public.t VALUES (1);"
         " INSERT INTO public.c VALUES (2)",
         "VALUES (1)");
  EXPECT_TRUE(OnlyTable().equal);
}

TEST_F(VerifyTest, PartitionedTableIsComparedAsOne) {
  Mirror("t",
         "CREATE TABLE public.t (id int PRIMARY KEY) PARTITION BY RANGE (id);"
         "CREATE TABLE public.t1 PARTITION OF public.t FOR VALUES FROM (0) TO (5);"
         "CREATE TABLE public.t2 PARTITION OF public.t FOR VALUES FROM (5) TO (9);"
         "INSERT INTO public.t VALUES (1), (6)",
         "VALUES (1), (6)");
  EXPECT_TRUE(OnlyTable().equal);
}

TEST_F(VerifyTest, WhatTheMirrorReceivedAfterThePointDoesNotCount) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY); INSERT INTO public.t VALUES (1)",
         "VALUES (1)");
  store_->Execute("INSERT INTO " + current_ + " VALUES (2, " + kForever + ", 2)");
  EXPECT_TRUE(OnlyTable().equal);
}

TEST_F(VerifyTest, MirrorThatLagsBehindTheDeadlineIsToldApart) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  Receive("0/1");
  request_.deadline = Deadline::After(milliseconds(1000));
  try {
    Verify(request_);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kQueryCanceled);
    EXPECT_THAT(error.detail(), HasSubstr("received up to 0/1"));
  }
}

TEST_F(VerifyTest, TableDroppedOnTheSourceLeavesOthersCompared) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  Mirror("u", "CREATE TABLE public.u (id int PRIMARY KEY, a int)", "SELECT 1, 2 WHERE false");
  Mirror("v", "CREATE TABLE public.v (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  source_->Execute("DROP TABLE public.t; ALTER TABLE public.u DROP COLUMN a");
  const auto verification = Verify(request_);
  ASSERT_EQ(verification.tables.size(), 3U);
  EXPECT_THAT(verification.tables[0].not_compared, HasSubstr("no longer exists"));
  EXPECT_THAT(verification.tables[1].not_compared, HasSubstr("\"a\" does not exist"));
  EXPECT_TRUE(verification.tables[2].equal);
  EXPECT_TRUE(verification.Equal());
}

TEST_F(VerifyTest, TableReplacedAfterThePointIsNotCalledDifferent) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  Mirror("u", "CREATE TABLE public.u (id int PRIMARY KEY); INSERT INTO public.u VALUES (1)",
         "VALUES (1)");
  Mirror("p",
         "CREATE TABLE public.p (id int PRIMARY KEY) PARTITION BY RANGE (id);"
         "CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM (0) TO (9);"
         "INSERT INTO public.p VALUES (1)",
         "VALUES (1)");
  bool first = true;
  request_.on_table = [&](const TableComparison&) {
    if (std::exchange(first, false)) {
      source_->Execute("TRUNCATE public.u; ALTER TABLE public.p DETACH PARTITION public.p1");
    }
  };
  const auto verification = Verify(request_);
  EXPECT_TRUE(verification.tables[0].equal);
  EXPECT_THAT(verification.tables[1].not_compared, HasSubstr("truncated or rewritten"));
  EXPECT_THAT(verification.tables[2].not_compared, HasSubstr("truncated or rewritten"));
}

TEST_F(VerifyTest, UnknownTableIsRefusedByName) {
  request_.only = {{"public", "nowhere"}};
  EXPECT_THROW(Verify(request_), base::Error);
}

TEST_F(VerifyTest, SourceInAnotherEncodingIsCompared) {
  auto& cluster = tests::Cluster::SharedSource();
  source_->Execute(
      "CREATE DATABASE verify_latin1 TEMPLATE template0 ENCODING 'LATIN1'"
      " LC_COLLATE 'C' LC_CTYPE 'C'");
  request_.source_dsn = cluster.Dsn("verify_latin1");
  source_ = Open(request_.source_dsn);
  Mirror("t",
         "CREATE TABLE public.t (id int PRIMARY KEY, a text); INSERT INTO public.t"
         " VALUES (1, 'é'), (2, 'ü')",
         "VALUES (1, 'é'), (2, 'u')");
  EXPECT_THAT(Said(OnlyTable()), ElementsAre("key (2): different row (columns a)"));
}

constexpr const char* kThousand =
    "SELECT i AS id, i % 10 AS a FROM generate_series(1, 1000) i";

TEST_F(VerifyTest, TableIsComparedInChunksOfItsKey) {
  Mirror("t",
         std::string("CREATE TABLE public.t (id int PRIMARY KEY, a int); INSERT INTO public.t ") +
                  kThousand,
         kThousand);
  request_.chunk_rows = 100;
  std::vector<int64_t> rows;
  request_.on_chunk = [&](const TableComparison& table) { rows.push_back(table.source_count); };
  EXPECT_TRUE(OnlyTable().equal);
  ASSERT_EQ(rows.size(), 11U);  // the last one is empty: the source has no more
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(rows[i], static_cast<int64_t>(i + 1) * 100);

  store_->Execute("UPDATE " + current_ + " SET a = -1 WHERE id IN (100, 101)");
  store_->Execute("DELETE FROM " + current_ + " WHERE id = 550");
  store_->Execute("INSERT INTO " + current_ + " VALUES (1, " + kForever + ", 0, 0), (1, " +
                  kForever + ", 1001, 0)");
  const auto table = OnlyTable();
  EXPECT_EQ(table.source_count, 1000);
  EXPECT_EQ(table.mirror_count, 1001);
  EXPECT_THAT(Said(table),
              ElementsAre("key (0): only in the mirror", "key (100): different row (columns a)",
                          "key (1001): only in the mirror", "key (101): different row (columns a)",
                          "key (550): missing in the mirror"));
}

TEST_F(VerifyTest, ChunksOfAKeyOfSeveralColumnsMeetWithoutGapOrOverlap) {
  const std::string rows =
      "SELECT 'k''\\' || i / 50 AS k, (i % 50)::numeric / 7 AS n, i AS a"
      " FROM generate_series(0, 999) i";
  Mirror("t",
         "CREATE TABLE public.t (k text COLLATE \"C\", n numeric, a int, PRIMARY KEY (k, n));"
         "INSERT INTO public.t " + rows,
         rows);
  request_.chunk_rows = 7;
  const auto equal = OnlyTable();
  EXPECT_TRUE(equal.equal);
  EXPECT_EQ(equal.source_count, 1000);
  EXPECT_EQ(equal.mirror_count, 1000);
  EXPECT_GT(equal.chunks, 100);
  store_->Execute("UPDATE " + current_ + " SET a = NULL WHERE a = 777");
  EXPECT_EQ(OnlyTable().differences.size(), 1U);
}

TEST_F(VerifyTest, InterruptedRunGoesOnBehindItsNewestChunk) {
  for (const char* name : {"t", "u"}) {
    Mirror(name, fmt::format("CREATE TABLE public.{0} (id int PRIMARY KEY, a int);"
                             "INSERT INTO public.{0} {1}",
                             name, kThousand),
           kThousand);
    store_->Execute("UPDATE " + current_ + " SET a = -1 WHERE id IN (150, 950)");
  }
  request_.chunk_rows = 100;
  std::stop_source interruption;
  request_.stop = interruption.get_token();
  int chunks = 0;
  request_.on_chunk = [&](const TableComparison&) {
    if (++chunks == 11 + 4) interruption.request_stop();  // in the middle of the second table
  };
  EXPECT_THROW(Verify(request_), base::Error);

  request_.stop = {};
  request_.resume = true;
  chunks = 0;
  request_.on_chunk = [&](const TableComparison&) { ++chunks; };
  const auto verification = Verify(request_);
  EXPECT_EQ(chunks, 11 - 4);
  EXPECT_EQ(verification.continued, 1U);
  ASSERT_EQ(verification.tables.size(), 2U);
  for (const auto& table : verification.tables) {
    EXPECT_EQ(table.source_count, 1000);
    EXPECT_EQ(table.mirror_count, 1000);
    EXPECT_FALSE(table.equal);
    EXPECT_THAT(Said(table), ElementsAre("key (150): different row (columns a)",
                                         "key (950): different row (columns a)"));
  }
  EXPECT_EQ(verification.tables[0].segments, 1);
  EXPECT_EQ(verification.tables[1].segments, 2);
  EXPECT_LE(verification.tables[1].first_position, verification.tables[1].position);

  // Once more: all has been said.
  chunks = 0;
  const auto again = Verify(request_);
  EXPECT_EQ(chunks, 0);
  EXPECT_EQ(again.continued, 0U);
  EXPECT_EQ(Said(again.tables.at(1)), Said(verification.tables[1]));
  // And a new run begins anew.
  request_.resume = false;
  Verify(request_);
  EXPECT_EQ(chunks, 22);
}

TEST_F(VerifyTest, TableWhoseKeyHasChangedMeanwhileBeginsAnew) {
  Mirror("t",
         std::string("CREATE TABLE public.t (id int PRIMARY KEY, a int); INSERT INTO public.t ") +
                  kThousand,
         kThousand);
  request_.chunk_rows = 100;
  std::stop_source interruption;
  request_.stop = interruption.get_token();
  request_.on_chunk = [&](const TableComparison&) { interruption.request_stop(); };
  EXPECT_THROW(Verify(request_), base::Error);
  store_->Execute("UPDATE tidemark.verification SET key_columns = '{former}'");
  request_.stop = {};
  request_.resume = true;
  request_.on_chunk = nullptr;
  const auto table = OnlyTable();
  EXPECT_EQ(table.source_count, 1000);
  EXPECT_EQ(table.segments, 1);
}

TEST_F(VerifyTest, KeysWhoseOrderBothSidesMayNotShareAreNotCutBy) {
  source_->Execute("CREATE TYPE public.mood AS ENUM ('sad', 'ok')");
  store_->Execute("CREATE TYPE public.mood AS ENUM ('ok', 'sad')");
  Mirror("t",
         "CREATE TABLE public.t (m public.mood PRIMARY KEY, a int);"
         "INSERT INTO public.t VALUES ('sad', 1), ('ok', 2)",
         "VALUES ('sad'::public.mood, 1), ('ok', 2)");
  request_.chunk_rows = 1;
  const auto table = OnlyTable();
  EXPECT_TRUE(table.equal);
  EXPECT_EQ(table.chunks, 1);  // of blocks
  store_->Execute("UPDATE " + current_ + " SET a = 3 WHERE a = 2");
  EXPECT_THAT(Said(OnlyTable()), ElementsAre("key (ok): different row (columns a)"));
}

TEST_F(VerifyTest, TableWithoutKeyIsReadByTheSourcesBlocks) {
  const std::string rows = "SELECT i AS a, repeat('x', 900) AS b FROM generate_series(1, 20000) i";
  Mirror("t",
         "CREATE TABLE public.t (a int, b text) PARTITION BY RANGE (a);"
         "CREATE TABLE public.t1 PARTITION OF public.t FOR VALUES FROM (0) TO (19000);"
         "CREATE TABLE public.t2 PARTITION OF public.t FOR VALUES FROM (19000) TO (30000);"
         "INSERT INTO public.t " + rows,
         rows);
  const auto table = OnlyTable();
  EXPECT_TRUE(table.equal);
  EXPECT_EQ(table.source_count, 20000);
  EXPECT_EQ(table.chunks, 2);
  store_->Execute("DELETE FROM " + current_ + " WHERE a = 19500");
  EXPECT_FALSE(OnlyTable().equal);
}

TEST_F(VerifyTest, OldPointIsRenewedBetweenTables) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  Mirror("u", "CREATE TABLE public.u (id int PRIMARY KEY)", "SELECT 1 WHERE false");
  request_.point_age_max = seconds(0);
  bool first = true;
  request_.on_table = [&](const TableComparison&) {
    if (std::exchange(first, false)) source_->Execute("CREATE TABLE public.between (a int)");
  };
  const auto verification = Verify(request_);
  EXPECT_LT(verification.tables[0].position, verification.tables[1].position);
}

TEST_F(VerifyTest, StoreThatCannotBeWrittenToIsComparedAllTheSame) {
  Mirror("t", "CREATE TABLE public.t (id int PRIMARY KEY); INSERT INTO public.t VALUES (1)",
         "VALUES (1)");
  store_->Execute("ALTER DATABASE " + store_->Value("SELECT quote_ident(current_database())") +
                  " SET default_transaction_read_only = on");
  EXPECT_TRUE(OnlyTable().equal);
  EXPECT_EQ(store_->Value("SELECT count(*) FROM tidemark.verification"), "0");
}

}  // namespace
}  // namespace tidemark::capture
