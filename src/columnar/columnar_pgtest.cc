// Tables of many types, out of a real server, through batches and back into a second table that
// must then be the same image by image.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "columnar/row_stream.h"
#include "tests/cluster.h"

namespace tidemark::columnar {
namespace {

constexpr size_t kChunkSize = 64 * 1024;

class Columnar : public testing::Test {
 protected:
  Columnar() : connection_(Open()) {}

  std::vector<PostgresColumn> ColumnsOf(const std::string& table) {
    static constexpr char kSql[] = R"(
        SELECT a.attname, a.atttypid, coalesce(nullif(t.typtypmod, -1), a.atttypmod),
               t.typbasetype, pg_catalog.format_type(a.atttypid, a.atttypmod)
        FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum)";
    const pg::Result found = connection_.Execute(kSql, {table});
    std::vector<PostgresColumn> columns;
    for (int row = 0; row < found.rows(); ++row) {
      columns.push_back({.name = found.str(row, 0),
                         .type = static_cast<uint32_t>(found.int64(row, 1)),
                         .modifier = static_cast<int32_t>(found.int64(row, 2)),
                         .base_type = static_cast<uint32_t>(found.int64(row, 3)),
                         .type_sql = found.str(row, 4)});
    }
    return columns;
  }

  // Copies `table` into a new table `came_back` and returns the number of batches.
  size_t CopyThroughBatches(const std::string& table, std::span<const PostgresColumn> columns,
                            BatchLimits limits) {
    const std::filesystem::path file = folder_.path() / "rows";
    connection_.Execute("COPY " + table + " TO '" + file.string() + "' (FORMAT binary)");
    std::ostringstream stream;
    stream << std::ifstream(file, std::ios::binary).rdbuf();
    BatchReader reader(columns, limits);
    const Batches batches = ReadBatches(reader, stream.str(), kChunkSize);

    const std::filesystem::path back = folder_.path() / "rows_back";
    std::ofstream(back, std::ios::binary) << StreamOf(reader.schema(), batches);
    connection_.Execute("CREATE TABLE came_back (LIKE " + table + ")");
    connection_.Execute("COPY came_back FROM '" + back.string() + "' (FORMAT binary)");
    return batches.size();
  }

  // Rows whose images differ, and rows on one side only.
  std::string Differences(const std::string& table) {
    return connection_.Value("SELECT count(*) FROM " + table +
                             " went FULL JOIN came_back came ON went.id = came.id"
                             " WHERE went.id IS NULL OR came.id IS NULL OR went *<> came");
  }

  tests::TemporaryFolder folder_;
  pg::Connection connection_;

 private:
  static pg::Connection Open() {
    tests::Cluster& cluster = tests::Cluster::Shared();
    static int number = 0;
    return pg::Connection::Open(
        {.dsn = cluster.CreateDatabase("columnar_" + std::to_string(++number))},
        base::Deadline::After(std::chrono::seconds(30)));
  }
};

TEST_F(Columnar, EveryTypeComesBackImageForImage) {
  connection_.Execute(R"sql(
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE TYPE pair AS (a int4, b text);
    CREATE DOMAIN price AS numeric(10,2) CHECK (VALUE >= 0);
    CREATE DOMAIN words AS text[];
    CREATE TABLE typed (
      id int4, b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric, n10 numeric(10,2),
      n3 numeric(3,-2), n24 numeric(2,4), n38 numeric(38,10), n76 numeric(76,38), n99 numeric(99,9),
      t text, v varchar(5), c char(4), na name, by bytea, d date, ti time, ts timestamp(3),
      tz timestamptz, iv interval, u uuid, j json, jb jsonb,
      ai int4[], at text[], an numeric(10,2)[], anu numeric[], ajb jsonb[], aiv interval[],
      ats timestamptz[], aby bytea[], ab bool[], au uuid[],
      m mood, p pair, pr price, w words, r int4range, mr int4multirange, x xml, ine inet, mac macaddr8,
      tt timetz, bi bit(3), vb varbit, ch "char", o oid, xi xid8, l pg_lsn, mo money, tv tsvector,
      pt point, am mood[], apr price[], ap pair[]);
    INSERT INTO typed (id) VALUES (0);
    INSERT INTO typed VALUES (
      1, true, -32768, 9223372036854775807, '-0', -216237.00000035969, 1e-1000, 1, 1234, 0.0099,
      -1234567890123456789012345678.0123456789, -12345678901234567890123456789012345678.5, 1.5,
      '', '', '', '', '', '4713-01-01 BC', '00:00', '294247-01-10 04:00:54.775',
      '4713-01-01 BC', '1 mon 30 days 24:00:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      '{"a" : 1, "a":2, "u":"\u0000"}', 'null',
      '{}', ARRAY['NULL', NULL, 'a b', '"q"', '\', '', U&'\00A0'], '{1,NULL}',
      '{NaN,Infinity,-0.00,1.50}', ARRAY['{"a": null}', NULL, 'null']::jsonb[], '{1 day,NULL}',
      '{}', '{"",NULL,"\\x00ff"}', '{t,f,NULL}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}',
      'happy', '(1,"x y")', 12.5, '{a,NULL}', '[1,)', '{[1,3),[5,9)}', '<a/>', '10.0.0.0/8',
      '08:00:2b:01:02:03:04:05', '12:00+05:45', '101', '', '', 4294967295, '18446744073709551615',
      'FF/FF', '-12.34', 'a:1 b:2', '(1,2)', '{sad,NULL}', '{1,2.50}', '{"(1,x)",NULL}');
    INSERT INTO typed (id, f8, n, d, ti, ts, tz, iv, t, by, jb) VALUES
      (2, 0.1::float8 + 0.2::float8, 'NaN', '5874897-12-31', '23:59:59.999999', '0001-01-01',
       '2026-11-29 12:34:56.789012+00', '-1 mon -1 day -00:00:00.000001', 'é', '\xdeadbeef', '"x"'),
      (3, 'NaN', 'Infinity', '0001-01-01', NULL, 'epoch', 'epoch', '178000000 years', E'a\nb', '',
       '18446744073709551623'),
      (4, '-Infinity', repeat('9', 131072)::numeric, NULL, NULL, NULL, NULL, '0',
       repeat('ü', 100000), decode(repeat('00ff', 500000), 'hex'), '{}');)sql");
  const std::vector<PostgresColumn> columns = ColumnsOf("typed");
  EXPECT_EQ(CopyThroughBatches("typed", columns, {.rows_max = 2}), 3U);
  EXPECT_EQ(Differences("typed"), "0");
}

TEST_F(Columnar, ManyRandomRowsComeBackImageForImage) {
  connection_.Execute(R"sql(
    SELECT setseed(0.25);
    CREATE TABLE drawn AS
    SELECT id, ((random() - 0.5) * 10 ^ (random() * 30))::numeric AS n,
           trunc((random() * 1e9)::numeric, (random() * 12)::int) AS scaled,
           ((random() - 0.5) * 1e10)::numeric(15,4) AS d15,
           ((random() - 0.5) * 10 ^ (random() * 50))::numeric(60,7) AS d60,
           'epoch'::timestamptz + (random() - 0.5) * interval '4000 years' AS tz,
           date '2000-01-01' + ((random() - 0.5) * 1e6)::int AS d,
           (random() - 0.5) * interval '300 years 70 days 30 hours' AS iv,
           nullif(repeat(chr(200 + (random() * 5000)::int), (random() * 5)::int), '') AS t,
           array_remove(ARRAY[nullif((random() * 4)::int, 0), (random() * 3)::int], 2) AS a
    FROM generate_series(1, 50000) id;)sql");
  const std::vector<PostgresColumn> columns = ColumnsOf("drawn");
  EXPECT_GT(CopyThroughBatches("drawn", columns, {.rows_max = 7000, .bytes_max = 1 << 20}), 7U);
  EXPECT_EQ(Differences("drawn"), "0");
}

TEST_F(Columnar, ACarriedColumnHoldsWhatArrowHasNot) {
  connection_.Execute(R"sql(
    CREATE TABLE strange (id int4, d date, ts timestamp, ti time, n numeric(10,2), a int4[]);
    INSERT INTO strange VALUES
      (1, 'infinity', '-infinity', '24:00', 'NaN', '[0:1]={1,NULL}'),
      (2, '-infinity', '294276-12-31 23:59:59.999999', '12:00', 1, '{{1,NULL},{3,4}}');)sql");
  std::vector<PostgresColumn> columns = ColumnsOf("strange");
  try {
    CopyThroughBatches("strange", columns, {});
    FAIL() << "a value was changed";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kDatetimeOverflow);
    EXPECT_THAT(error.context(), testing::Contains("column \"d\" of row 1"));
  }
  for (PostgresColumn& column : columns) column.carry = Carry::kPostgres;
  CopyThroughBatches("strange", columns, {});
  EXPECT_EQ(Differences("strange"), "0");
}

}  // namespace
}  // namespace tidemark::columnar
