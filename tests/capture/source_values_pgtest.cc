// What a source may hold, and how its roles may be set: every kind of value crosses text-exact by
// copy, by stream, by a complete capture and in history, whatever the sessions' own defaults are.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "capture/capture_run.h"
#include "source/postgres/postgres_relation.h"
#include "temporal/store.h"
#include "tests/mirror_fixture.h"

namespace tidemark::tests {
namespace {


class SourceValues : public MirrorFixture {
 protected:
  /// Makes a role whose every session begins with settings that would change the text of values.
  static std::string MakeRole(pg::Connection& on, const std::string& name,
                              const std::string& attributes) {
    on.Execute(fmt::format("DROP ROLE IF EXISTS {0}; CREATE ROLE {0} LOGIN {1}; "
                           "ALTER ROLE {0} SET DateStyle = 'German, DMY'; "
                           "ALTER ROLE {0} SET IntervalStyle = 'sql_standard'; "
                           "ALTER ROLE {0} SET TimeZone = 'Asia/Kathmandu'; "
                           "ALTER ROLE {0} SET extra_float_digits = 0; "
                           "ALTER ROLE {0} SET bytea_output = 'escape'",
                           name, attributes));
    return name;
  }
  static std::string As(const std::string& role, const std::string& dsn) {
    const auto at = dsn.find("user=postgres");
    return dsn.substr(0, at) + "user=" + role + dsn.substr(at +
                                                           std::string("user=postgres").size());
  }
  /// The source's role may replicate and read, no more; the store's owns its database and may make
  /// roles.
  void UseUnprivilegedRoles() {
    const auto reader = MakeRole(*source_, "reader_" + options_.name, "REPLICATION");
    source_->Execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + reader);
    const auto keeper = MakeRole(*store_, "keeper_" + options_.name, "CREATEROLE");
    store_->Execute(fmt::format("ALTER DATABASE {} OWNER TO {}",
                                store_->Value("SELECT current_database()"), keeper));
    options_.source_dsn = As(reader, options_.source_dsn);
    options_.store_dsn = As(keeper, options_.store_dsn);
  }
  /// By copy, by stream and in history.
  void ExpectThatEverythingCrosses();
};

// One column a type; a row leaves open what it says nothing about.
constexpr const char* kTable = R"sql(
CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree; CREATE EXTENSION isn;
CREATE EXTENSION cube; CREATE EXTENSION seg;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (n numeric, t text, m mood);
CREATE TYPE span AS RANGE (subtype = float8);
CREATE TABLE v (
  id int PRIMARY KEY, b bytea, n numeric, n2 numeric(10,2), n3 numeric(5,-2), f8 float8, f4 float4,
  d date, ts timestamp, tz timestamptz, ti time, tt timetz, iv interval,
  ta text[], ia int[], ma mood[], pa pair[], da posint[], ja jsonb[], va interval[],
   za timestamptz[],
  j json, jb jsonb, x xml, tv tsvector, tq tsquery, ip inet, ci cidr, m6 macaddr, m8 macaddr8,
  b3 bit(3), vb varbit, ch "char", na name, o oid, x8 xid8, ls pg_lsn, mo money,
  r int4range, tr tstzrange, mr int4multirange, sp span, dp posint, e mood, p pair, bp char(5),
  u uuid, pt point, pg polygon, hs hstore, ct citext, lt ltree, isb isbn, cu cube, se seg);
ALTER TABLE v ALTER b SET STORAGE EXTERNAL;
)sql";

constexpr const char* kRows = R"sql(
INSERT INTO v (id, b, n, n2, n3, f8, f4, d, ts, tz, ti, tt, iv) VALUES
  (1, '\xdeadbeef', 20, 1, 12345, -216237.00000035969, 0.1, 'infinity', 'infinity', 'infinity',
   '24:00:00', '24:00:00+05:45', '1 mon 30 days 24:00:00'),
  (2, '', 17.685, -0.01, 49, 0.1::float8 + 0.2, '-0', '-infinity', '-infinity', '-infinity',
   '00:00:00.000001', '00:00:00-15:59', '-1 year -2 mons +3 days -04:05:06.000007'),
  (3, decode(string_agg, 'hex'), '1e-1000', 99999999.99, -150, '-0', 'NaN', '4713-01-01 BC',
   '4713-01-01 00:00:00 BC', '4713-01-02 00:00:00+00 BC', '12:34:56.789012', '12:34:56+00', '0'),
  (4, repeat('x', 1048576)::bytea, repeat('9', 131072)::numeric, 0, 0, 'NaN', '1e-45', '0001-01-01',
   '0001-01-01', '294276-12-31 23:59:59.999999+00', NULL, NULL, '178000000 years'),
  (5, '\x00', 'NaN', 'NaN', 'NaN', '-Infinity', 'Infinity', '5874897-12-31',
   '294276-12-31 23:59:59.999999', '2026-11-28 12:00:00.5+05:45', NULL, NULL, '-0.000001'),
  (6, NULL, 'Infinity', NULL, NULL, 5e-324, 3.4028235e38, '2026-02-01', '2026-02-01 01:02:03.4',
   '2026-02-01 01:02:03.4+00', NULL, NULL, '1.5 days'),
  (7, NULL, '-Infinity', NULL, NULL, 1.7976931348623157e308, NULL, NULL, NULL, NULL, NULL, NULL,
   NULL);
INSERT INTO v (id, ta, ia, ma, pa, da, ja, va, za) VALUES
  (11, ARRAY['NULL', NULL, 'a b', '"q"', '\', ''], '[0:1]={1,NULL}', '{sad,NULL,ok}',
   ARRAY[ROW(1.50, 'a,b"', 'ok')::pair, NULL, ROW(NULL, '', NULL)::pair], '{1,2}',
   ARRAY['{"a": null}'::jsonb, 'null', NULL], '{"1 mon 30 days 24:00:00",NULL}',
   '{infinity,"2026-11-28 12:00:00+05:45"}'),
  (12, ARRAY[U&'\00A0', U&'\3000', E'\t\n'], '{{1,2},{3,NULL}}', '{}', '{}', '{}', '{}', '{}',
   '{}'),
  (13, '{}', '[-5:-4][2:3]={{1,2},{3,4}}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO v (id, j, jb, x, tv, tq) VALUES
  (21, '{"a":null}', '{"a": null, "n": 18446744073709551623, "d": 1.10}', '<a b="c">é &amp; </a>',
   'a:1A fat:2 ''x y'':3B,4', 'fat & (rat:AB | !''x y'')'),
  (22, 'null', 'null', '', '', 'super:*'),
  (23, '"x"', '"x"', '<a/><b/>', NULL, NULL),
  (24, E' {"b" : 1,\n  "a":2, "b":3, "z": "\\u0000"} ', '{"é": [1, [], {}]}', NULL, NULL, NULL),
  (25, '18446744073709551623', '-0.0', NULL, NULL, NULL),
  (26, NULL, NULL, NULL, NULL, NULL);
INSERT INTO v (id, ip, ci, m6, m8, b3, vb, ch, na, o, x8, ls, mo, r, tr, mr, sp, dp, e, p, bp, u,
 pt, pg,
               hs, ct, lt, isb, cu, se) VALUES
  (31, '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '101', '', '', 'n',
   4294967295, '18446744073709551615', 'FFFFFFFF/FFFFFFFF', '-92233720368547758.08', '[1,5)',
   '[2026-11-28 12:00:00+05:45,infinity]', '{[1,3),[5,9)}', '[0.1,0.30000000000000004)', 1, 'ok',
   ROW(1.0, 'x "y" (z)', 'sad'), 'a', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '(0.1,-0)',
   '((0,0),(1,0),(0.1,0.2))', '"a b"=>"c", n=>NULL', 'CaSe', 'Top.Science', '978-0-393-04002-9',
   '(0.1, 2)', '1.50 .. 2.25'),
  (32, '192.168.0.1', '::/0', NULL, NULL, '000', '1010101', 'c', '', 0, '0', '0/0',
   '0.01', 'empty', '(,)', '{}', 'empty', 2147483647, 'sad', ROW(NULL, NULL, NULL), '', NULL, NULL,
    NULL,
   '', '', '', NULL, '(1),(2)', '~ 3');
)sql";

std::string RowsOfEveryKind() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += fmt::format("{:02x}", i);
  std::string rows = kRows;
  const std::string place = "decode(string_agg, 'hex')";
  rows.replace(rows.find(place), place.size(), "'\\x" + all_bytes + "'");
  return rows;
}

std::string Table(const pg::Connection& source) {
  std::string table = kTable;
  if (source.server_version() >= 150000) return table;
  const std::string negative_scale = "(5,-2)";  // from PostgreSQL 15 on
  return table.replace(table.find(negative_scale), negative_scale.size(), "(5)");
}

constexpr const char* kAll = "SELECT * FROM v ORDER BY id";

void SourceValues::ExpectThatEverythingCrosses() {
  source_->Execute(Table(*source_));
  source_->Execute(RowsOfEveryKind());
  source_->Execute("CREATE PUBLICATION tidemark FOR ALL TABLES");
  UseUnprivilegedRoles();
  Start();
  CatchUp();
  ExpectSame(kAll);
  const auto copied = CatchUp();
  // The same again by the stream, under other keys and as changes of the old ones.
  source_->Execute("UPDATE v SET id = id + 100");
  source_->Execute(RowsOfEveryKind());
  CatchUp();
  ExpectSame(kAll);
  source_->Execute("UPDATE v SET na = 'changed' WHERE id > 100");
  source_->Execute("DELETE FROM v WHERE id < 100");
  CatchUp();
  ExpectSame(kAll);
  source_->Execute("TRUNCATE v");
  source_->Execute(RowsOfEveryKind());
  CatchUp();
  // History, as copied and as streamed, is what the source has now under the same keys.
  const auto now = Rows(*source_, kAll);
  EXPECT_EQ(Rows(*store_, "SELECT * FROM tidemark.as_of_position(NULL::public.v, '" + copied +
                              "') ORDER BY id"),
            now);
  EXPECT_EQ(Rows(*store_, kAll), now);
}

TEST_F(SourceValues, CrossTextExactWhateverTheDefaultsOfTheRoles) { ExpectThatEverythingCrosses(); }

TEST_F(SourceValues, CrossTextExactAsTextToo) {
  options_.unknown_as_text = true;
  ExpectThatEverythingCrosses();
}

// Extensions that bring types and tables of their own.
TEST_F(SourceValues, OfLargeExtensionsThatAreInstalledHere) {
  struct Extension {
    const char *name, *column, *values;
  };
  std::string present;
  for (const auto& [name, column, values] :
       {Extension{"postgis", "g geometry, gg geography(PointZ, 4326)",
                  "'SRID=4326;POINT(1 2)', 'POINT Z (1.5 -2 3)'), (2, 'GEOMETRYCOLLECTION(POINT(0 "
                  "0),LINESTRING(0 0,1 0.1))', NULL), (3, 'POLYGON EMPTY', NULL"},
        Extension{"vector", "e vector(3), h halfvec",
                  "'[1,2.5,-3e-5]', '[1,2]'), (2, NULL, '[0]'"}}) {
    const auto here = [&](pg::Connection& on) {
      return on.Value("SELECT count(*) FROM pg_available_extensions WHERE name = $1", {name}) ==
          "1";
    };
    if (!here(*source_) || !here(*store_)) continue;
    present += std::string(present.empty() ? "" : ", ") + name;
    source_->Execute(fmt::format("CREATE EXTENSION {0}; CREATE TABLE of_{0} (id int PRIMARY KEY, "
                                 "{1}); "
                                 "INSERT INTO of_{0} VALUES (1, {2})",
                                 name, column, values));
  }
  if (present.empty()) GTEST_SKIP() << "neither postgis nor vector is installed";
  source_->Execute("CREATE PUBLICATION tidemark FOR ALL TABLES");
  Start();
  CatchUp();
  for (const char* name : {"postgis", "vector"}) {
    if (present.find(name) == std::string::npos) continue;
    const auto all = fmt::format("SELECT t::text FROM of_{} t ORDER BY id", name);
    ExpectSame(all);
    source_->Execute(fmt::format("UPDATE of_{} SET id = id + 10", name));
    CatchUp();
    ExpectSame(all);
  }
}

TEST_F(SourceValues, OfTypesThatTheStoreLacksAreTextWhereThatIsWanted) {
  source_->Execute(
      "CREATE TYPE odd; "
      "CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'textin' LANGUAGE internal IMMUTABLE STRICT; "
      "CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE "
      "STRICT; "
      "CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = text); "
      "CREATE DOMAIN odder AS odd; CREATE TYPE held AS (n int, o odd, f bool); "
      "CREATE TYPE mood AS ENUM ('sad', 'ok'); "
      "CREATE TABLE t (id int PRIMARY KEY, o odd, os odd[], d odder, h held, n numeric(10,2), ok "
      "bool, "
      "m mood[], ip inet, tz timestamptz); "
      "INSERT INTO t VALUES (1, 'a \"b\"', '{x,NULL,\"y z\"}', 'd', ROW(1, 'q,r', true), 1, true, "
      "'{sad,NULL}', '10.0.0.1', '2026-11-28 12:00+05:45'); INSERT INTO t (id) VALUES (2); "
      "CREATE TABLE u (n int, o odd, f float8); ALTER TABLE u REPLICA IDENTITY FULL; "
      "INSERT INTO u VALUES (1, 'a', '-0'), (1, 'a', '-0'), (2, NULL, 0.1); "
      "CREATE TABLE plain (id int PRIMARY KEY)");
  options_.unknown_as_text = true;
  Start();
  CatchUp();
  const auto all = [&] {
    ExpectSame("SELECT * FROM t ORDER BY id");
    ExpectSame("SELECT * FROM u ORDER BY n, o::text");
  };
  all();
  source_->Execute("UPDATE t SET o = 'changed', h = ROW(NULL, NULL, NULL), ok = false WHERE id = "
                   "1; "
                   "UPDATE t SET id = 3 WHERE id = 2; INSERT INTO t VALUES (4, 'o', '{}', '', "
                   "NULL, 2.5)");
  source_->Execute("DELETE FROM u WHERE ctid = (SELECT min(ctid) FROM u); UPDATE u SET o = 'b' "
                   "WHERE n = 2");
  CatchUp();
  all();
  EXPECT_EQ(store_->Value("SELECT string_agg(format_type(atttypid, atttypmod), ' ' ORDER BY "
                          "attnum) "
                          "FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0"),
            "integer text text text text numeric(10,2) boolean mood[] inet timestamp with time "
            "zone");
  Await("SELECT count(*) = 5 FROM jsonb_array_elements((SELECT problems FROM tidemark.progress)) p "
        "WHERE p ->> 'message' LIKE '%is mirrored as text%'");
}

// PostgreSQL itself does not read its binary form (docs/reference/limits.md).
TEST_F(SourceValues, AnEmptyTsqueryStopsTheMirrorUnlessValuesTravelAsText) {
  source_->Execute("CREATE TABLE q (id int PRIMARY KEY, v tsquery, a tsquery[]); "
                   "INSERT INTO q VALUES (1, 'fat & !rat', '{a,NULL}')");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM q ORDER BY id");
  source_->Execute("INSERT INTO q VALUES (2, 'before', NULL)");
  source_->Execute("INSERT INTO q VALUES (3, '', NULL)");
  Await("SELECT problems::text LIKE '%XX000%' AND problems::text LIKE '%public.q%' "
        "FROM tidemark.progress");
  Await("SELECT count(*) = 2 FROM q");
  Stop();
  options_.unknown_as_text = true;
  Start();
  Await("SELECT count(*) = 3 FROM q");
  source_->Execute("UPDATE q SET a = ARRAY['', 'b']::tsquery[] WHERE id = 1");
  Await("SELECT a[1] = '' FROM q WHERE id = 1");
  ExpectSame("SELECT * FROM q ORDER BY id");
}

TEST_F(SourceValues, AnEmptyTsqueryIsCopiedAsText) {
  source_->Execute("CREATE TABLE q (id int PRIMARY KEY, v tsquery); "
                   "INSERT INTO q VALUES (1, ''), (2, 'a')");
  options_.unknown_as_text = true;
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM q ORDER BY id");
}

TEST_F(SourceValues, OfTypesThatTheStoreLacksLeaveTheirTableOutByName) {
  source_->Execute(
      "CREATE TYPE odd; "
      "CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'textin' LANGUAGE internal IMMUTABLE STRICT; "
      "CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE "
      "STRICT; "
      "CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = text); "
      "CREATE TABLE t (id int PRIMARY KEY, o odd); "
      "CREATE TABLE plain (id int PRIMARY KEY); INSERT INTO plain VALUES (1)");
  Start();
  CatchUp();
  ExpectSame("SELECT * FROM plain");
  EXPECT_EQ(store_->Value("SELECT to_regclass('t') IS NULL"), "t");
  Await("SELECT problems::text LIKE '%set unknown_types: text%' FROM tidemark.progress");
}

TEST_F(SourceValues, InfiniteIntervalsAreNamedWhereTheStoreHasNone) {
  if (source_->server_version() < 170000 || store_->server_version() >= 170000) {
    GTEST_SKIP() << "infinite intervals exist from PostgreSQL 17 on";
  }
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY, v interval[]); INSERT INTO t VALUES (1, "
                   "'{1 day}')");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO t VALUES (2, '{-infinity}')");
  Await("SELECT problems::text LIKE '%column v of public.t has an infinite interval, key id=2%' "
        "FROM tidemark.progress");
  EXPECT_EQ(Rows(*store_, "SELECT * FROM t"), "1|{\"1 day\"}\n");
}

TEST_F(SourceValues, AreReadTextExactByACompleteCapture) {
  source_->Execute(Table(*source_));
  source_->Execute(RowsOfEveryKind());
  UseUnprivilegedRoles();
  capture::PlannedDataset planned{
      .name = "public.v",
      .in_store = {"public", "v"},
      .strategy = temporal::Strategy::kSnapshot,
      .key = {"id"},
      .cursor = "",
      .overlap = "",
      .source = "shop",
      .source_kind = "postgres",
      .open = [dsn = options_.source_dsn] {
        return source::OpenPostgresRelation({.dsn = dsn, .relation = "public.v", .snapshot = ""});
      },
      .mirror = std::nullopt};
  {
    auto store = temporal::OpenStore(options_.store_dsn, base::Deadline::After(30s));
    temporal::Migrate(store);
  }
  for (const bool changed : {true, false}) {
    const auto report = capture::RunCapture({.store_dsn = options_.store_dsn,
                                             .datasets = {planned}}, {});
    ASSERT_EQ(report.members.size(), 1U);
    if (report.members[0].error) FAIL() << report.members[0].error->Full();
    EXPECT_EQ(store_->Value("SELECT count(*) FROM public_history.v WHERE tx_to IS NOT NULL"), "0")
        << (changed ? "first" : "unchanged");
    ExpectSame(kAll);
  }
}

TEST_F(SourceValues, GeneratedColumnsThatAreNotPublishedAreAbsentFromCopyAndStream) {
  source_->Execute("CREATE TABLE g (id int PRIMARY KEY, n int, "
                   "twice int GENERATED ALWAYS AS (n * 2) STORED); INSERT INTO g VALUES (1, 1), "
                   "(2, 2)");
  if (source_->server_version() >= 180000) {
    source_->Execute("ALTER TABLE g ADD thrice int GENERATED ALWAYS AS (n * 3) VIRTUAL");
  }
  source_->Execute("CREATE PUBLICATION tidemark FOR ALL TABLES");
  Start();
  CatchUp();
  source_->Execute("INSERT INTO g VALUES (3, 3); UPDATE g SET n = 10 WHERE id = 1; "
                   "DELETE FROM g WHERE id = 2");
  CatchUp();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM g ORDER BY id"), "1|10\n3|3\n");
}

TEST_F(SourceValues, PublishedGeneratedColumnsArePresentInCopyAndStream) {
  if (source_->server_version() < 180000) {
    GTEST_SKIP() << "generated columns are published from PostgreSQL 18 on";
  }
  source_->Execute(
      "CREATE TABLE g (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) STORED, "
      "thrice int GENERATED ALWAYS AS (n * 3) VIRTUAL); INSERT INTO g (id, n) VALUES (1, 1), (2, "
      "2); "
      "COMMENT ON COLUMN g.twice IS 'made'; "
      "CREATE TABLE listed (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) "
      "STORED); "
      "INSERT INTO listed (id, n) VALUES (1, 1); "
      "CREATE TABLE unkeyed (n int, twice int GENERATED ALWAYS AS (n * 2) STORED); "
      "ALTER TABLE unkeyed REPLICA IDENTITY FULL; INSERT INTO unkeyed VALUES (1), (1), (2); "
      "CREATE PUBLICATION tidemark FOR TABLE g, unkeyed, listed (id, twice) "
      "WITH (publish_generated_columns = stored)");
  Start();
  CatchUp();
  ExpectSame("SELECT id, n, twice FROM g ORDER BY id");
  source_->Execute("INSERT INTO g (id, n) VALUES (3, 3); UPDATE g SET n = 10 WHERE id = 1; "
                   "DELETE FROM g WHERE id = 2; UPDATE listed SET n = 7; "
                   "DELETE FROM unkeyed WHERE ctid = (SELECT min(ctid) FROM unkeyed); "
                   "UPDATE unkeyed SET n = 5 WHERE n = 2");
  CatchUp();
  ExpectSame("SELECT id, n, twice FROM g ORDER BY id");
  ExpectSame("SELECT id, twice FROM listed");
  ExpectSame("SELECT n, twice FROM unkeyed ORDER BY n");
  EXPECT_EQ(store_->Value("SELECT count(*) FROM pg_attribute WHERE attrelid IN ('g'::regclass, "
                          "'listed'::regclass) AND attname IN ('thrice', 'n')"),
            "1");
  EXPECT_EQ(store_->Value("SELECT col_description('g'::regclass, attnum) FROM pg_attribute "
                          "WHERE attrelid = 'g'::regclass AND attname = 'twice'"),
            "made");
}

TEST_F(SourceValues, GeneratedColumnsThatBecomePublishedAreReadAndFollowed) {
  if (source_->server_version() < 180000) {
    GTEST_SKIP() << "generated columns are published from PostgreSQL 18 on";
  }
  source_->Execute("CREATE TABLE g (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * "
                   "2) "
                   "STORED); INSERT INTO g (id, n) VALUES (1, 1), (2, 2); "
                   "CREATE PUBLICATION tidemark FOR ALL TABLES");
  Start();
  CatchUp();
  EXPECT_EQ(Rows(*store_, "SELECT * FROM g ORDER BY id"), "1|1\n2|2\n");
  const auto same = [&] {
    const std::string sql = "SELECT id, n, twice FROM g ORDER BY id";
    const auto deadline = base::Deadline::After(30s);
    for (;;) {
      try {
        if (Rows(*store_, sql) == Rows(*source_, sql)) return true;
      } catch (const base::Error& error) {
        if (error.state().str() != "42703") throw;  // not there yet
      }
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(50ms);
    }
  };
  source_->Execute("ALTER PUBLICATION tidemark SET (publish_generated_columns = stored)");
  source_->Execute("UPDATE g SET n = 5 WHERE id = 2");
  EXPECT_TRUE(same());
  source_->Execute("ALTER TABLE g ALTER twice SET EXPRESSION AS (n * 20)");
  EXPECT_TRUE(same());
  source_->Execute("INSERT INTO g (id, n) VALUES (3, 3)");
  EXPECT_TRUE(same());
}

TEST_F(SourceValues, SlotIsAFailoverSlotWhereTheSourceHasThem) {
  if (source_->server_version() < 170000) {
    GTEST_SKIP() << "failover slots exist from PostgreSQL 17 on";
  }
  source_->Execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
  Start();
  CatchUp();
  const auto slot = source::InspectSlot(*source_, capture::SlotNameFor(options_.name));
  ASSERT_TRUE(slot);
  EXPECT_TRUE(slot->failover);
  EXPECT_FALSE(slot->temporary);
  source_->Execute("INSERT INTO t VALUES (2)");
  CatchUp();
  ExpectSame("SELECT * FROM t ORDER BY id");
}

}  // namespace
}  // namespace tidemark::tests
