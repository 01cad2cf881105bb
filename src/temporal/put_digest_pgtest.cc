// The digest of a first capture, computed beside the copy, must be what the store's own SQL
// computes.
#include "temporal/put_digest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "columnar/type_oid.h"
#include "pg/copy.h"
#include "temporal/store.h"
#include "temporal/value_text.h"
#include "temporal/version_chain.h"
#include "tests/cluster.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {
namespace {

pg::Connection Open(const std::string& database) {
  const auto dsn = tests::Cluster::Shared().CreateDatabase(database);
  return OpenStore(dsn, base::Deadline::After(std::chrono::seconds(30)));
}

// Every value of `sql`, a query with one column `v` of the type.
void ExpectTexts(pg::Connection& on, const DatasetColumn& column, const std::string& sql,
                 bool certain = true) {
  SCOPED_TRACE(column.type_sql);
  ASSERT_TRUE(HasValueText(column));
  on.Execute(
      fmt::format("DROP TABLE IF EXISTS public.v; CREATE TABLE public.v AS SELECT (q.v)::{} AS v "
                  "FROM ({}) AS q (v)",
                  column.type_sql, sql));
  const auto texts = on.Execute("SELECT v::text FROM public.v ORDER BY ctid");
  pg::CopyOut copy(on, "COPY public.v TO STDOUT (FORMAT binary)");
  wire::CopyBinaryReader reader;
  int row = 0;
  while (const auto chunk = copy.Next()) {
    reader.Feed(*chunk);
    while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
      const auto expected = texts.str(row++, 0);
      if (!reader.fields()[0]) continue;
      std::string text = ">";
      const bool known = AppendValueText(column, *reader.fields()[0], text);
      EXPECT_EQ(known, certain) << expected;
      EXPECT_EQ(text, known ? ">" + expected : ">");
    }
  }
  EXPECT_EQ(row, texts.rows());
  EXPECT_GT(row, 0);
}

DatasetColumn Column(pg::Oid type, const std::string& type_sql, int modifier = -1) {
  return {.name = "v", .source_type = type, .type_modifier = modifier, .type_sql = type_sql};
}

TEST(ValueText, IsWhatPostgreSQLWrites) {
  auto on = Open("value_text");
  ExpectTexts(on, Column(columnar::kBool, "bool"), "VALUES (true), (false), (NULL)");
  ExpectTexts(on, Column(columnar::kInt2, "smallint"), "VALUES (-32768), (0), (32767)");
  ExpectTexts(on, Column(columnar::kInt4, "int"), "VALUES (-2147483648), (-1), (0), (2147483647)");
  ExpectTexts(on, Column(columnar::kInt8, "bigint"),
              "VALUES (-9223372036854775808), (0), (9223372036854775807)");
  ExpectTexts(on, Column(columnar::kText, "text"), "VALUES (''), ('ü €'), ('  blanks  ')");
  ExpectTexts(on, Column(columnar::kVarchar, "varchar(3)", 7), "VALUES (''), ('üüü'), ('a  ')");
  ExpectTexts(on, Column(columnar::kBpchar, "char(5)", 9),
              "VALUES (''), ('üü'), (' a '), ('abcde')");
  ExpectTexts(on, Column(columnar::kJson, "json"), "VALUES ('{\"a\":  1}'), ('null'), (NULL)");
  ExpectTexts(on, Column(columnar::kBytea, "bytea"), "VALUES ('\\x'), ('\\x00ff7f80')");
  ExpectTexts(on, Column(columnar::kUuid, "uuid"),
              "VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')");
}

TEST(ValueText, OfNumbersIsWhatPostgreSQLWrites) {
  auto on = Open("value_text_numbers");
  ExpectTexts(
      on, Column(columnar::kNumeric, "numeric"),
      "VALUES ('0'), ('0.000'), ('-1.50'), ('NaN'), ('Infinity'), ('-Infinity'), ('1e100'), "
      "('-1e-30'), ('10000'), ('9999.9999'), ('100000000.00000001')");
  ExpectTexts(on, Column(columnar::kNumeric, "numeric(12,2)", (12 << 16 | 2) + 4),
              "SELECT (i * 37 - 5000) / 100.0 FROM generate_series(1, 1000) i");
  ExpectTexts(on, Column(columnar::kFloat8, "float8"),
              "VALUES ('0'), ('-0'), ('NaN'), ('Infinity'), ('-Infinity'), ('1e-4'), ('9.9e-5'), "
              "('123456789012345'), ('1e15'), ('999999999999999'), ('1e14'), ('5e-324'), "
              "('2.2250738585072014e-308'), ('4503599627370495.5'), ('0.1'), ('-1.5'), ('100')");
  ExpectTexts(
      on, Column(columnar::kFloat8, "float8"),
      "SELECT (random() - 0.5) * power(10.0, i % 300 - 290) FROM generate_series(1, 20000) i");
  ExpectTexts(on, Column(columnar::kFloat8, "float8"),
              "SELECT i / 7.0 FROM generate_series(-3000, 3000) i");
  ExpectTexts(
      on, Column(columnar::kFloat4, "float4"),
      "VALUES ('0'), ('-0'), ('NaN'), ('1e-4'), ('9.9e-5'), ('123456'), ('999999'), ('1e6'), "
      "('1e-45'), ('1.17549435e-38'), ('0.1')");
  ExpectTexts(on, Column(columnar::kFloat4, "float4"),
              "SELECT (random() - 0.5) * power(10.0, i % 40 - 35) FROM generate_series(1, 20000) i");
}

TEST(ValueText, OfTimesIsWhatPostgreSQLWrites) {
  auto on = Open("value_text_times");
  ExpectTexts(on, Column(columnar::kDate, "date"),
              "VALUES ('2026-11-28'), ('infinity'), ('-infinity'), ('0001-01-01'), "
              "('0001-12-31 BC'), ('4713-01-01 BC'), ('5874897-12-31'), ('1999-12-31'), "
              "('2000-02-29'), ('10000-01-01')");
  ExpectTexts(on, Column(columnar::kDate, "date"),
              "SELECT date '2000-01-01' + i * 997 FROM generate_series(-2400, 2400) i");
  ExpectTexts(
      on, Column(columnar::kTime, "time"),
      "VALUES ('00:00'), ('24:00'), ('23:59:59.999999'), ('01:02:03.5'), ('01:02:03.000010')");
  const std::string instants =
      "VALUES ('2026-11-28 12:34:56'), ('infinity'), ('-infinity'), ('1999-12-31 "
      "23:59:59.999999'), "
      "('4713-01-01 BC'), ('294276-12-31 23:59:59.999999'), ('2000-01-01'), ('2026-01-01 "
      "00:00:00.1'), "
      "('0001-01-01 00:00:00.000001 BC')";
  ExpectTexts(on, Column(columnar::kTimestamp, "timestamp"), instants);
  ExpectTexts(on, Column(columnar::kTimestamptz, "timestamptz"), instants);
  ExpectTexts(on, Column(columnar::kTimestamptz, "timestamptz(3)", 3),
              "SELECT '2026-01-01'::timestamptz + i * interval '12345.678901 s' FROM "
              "generate_series(-500, 500) i");
}

TEST(ValueText, ThatIsNotCertainIsNotGiven) {
  auto on = Open("value_text_uncertain");
  ExpectTexts(on, Column(columnar::kFloat8, "float8"),
              "VALUES ('9007199254740993'), ('-1e16'), ('1e300')", false);
  ExpectTexts(on, Column(columnar::kFloat4, "float4"), "VALUES ('8388608'), ('-1e9')", false);
  // Values as a source may send them before the column's own length, scale and precision are
  // applied.
  const auto sent = [&](DatasetColumn column, int modifier, const std::string& values) {
    column.type_modifier = modifier;
    ExpectTexts(on, column, values, false);
  };
  sent(Column(columnar::kNumeric, "numeric"), (12 << 16 | 2) + 4, "VALUES ('1'), ('1.234')");
  sent(Column(columnar::kVarchar, "varchar"), 7, "VALUES ('abc ')");
  sent(Column(columnar::kTimestamp, "timestamp"), 3, "VALUES ('2026-01-01 00:00:00.0001')");
  for (const pg::Oid type :
       {pg::Oid{columnar::kJsonb}, pg::Oid{columnar::kInterval}, pg::Oid{1007}}) {
    EXPECT_FALSE(HasValueText(Column(type, "")));
  }
}

class PutDigestTest : public testing::Test {
 protected:
  // The digest by PutDigest of the rows of public.t.
  static std::optional<std::string> Computed(pg::Connection& on,
                                             const std::vector<DatasetColumn>& columns) {
    auto digest = PutDigest::Begin(on, columns);
    if (!digest) return std::nullopt;
    pg::CopyOut copy(on, "COPY public.t TO STDOUT (FORMAT binary)");
    wire::CopyBinaryReader reader;
    std::string rows;
    while (const auto chunk = copy.Next()) {
      reader.Feed(*chunk);
      while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
        rows += reader.row_bytes();
        if (rows.size() > 10'000) digest->Give(std::exchange(rows, {}));
      }
    }
    digest->Give(rows);
    return digest->Finish();
  }
  static std::string BySql(pg::Connection& on, const std::vector<DatasetColumn>& columns) {
    std::vector<std::string> texts;
    for (const auto& column : columns) texts.push_back("c." + column.name + "::pg_catalog.text");
    pg::Transaction tx(on);
    return ComputeDigest(on,
                         fmt::format("SELECT {} AS h FROM public.t c", RowHashSql(on, 'P', texts)));
  }
  const std::vector<DatasetColumn> columns_ = {
      {.name = "id", .source_type = columnar::kInt8, .type_sql = "bigint"},
      {.name = "name", .source_type = columnar::kText, .type_sql = "text"},
      {.name = "f", .source_type = columnar::kFloat8, .type_sql = "float8"},
      {.name = "at", .source_type = columnar::kTimestamptz, .type_sql = "timestamptz"}};
};

TEST_F(PutDigestTest, IsTheDigestThatTheStoreComputes) {
  auto on = Open("put_digest");
  on.Execute("CREATE TABLE public.t (id bigint, name text, f float8, at timestamptz)");
  EXPECT_EQ(Computed(on, columns_), BySql(on, columns_));  // of no rows
  on.Execute(
      "INSERT INTO public.t SELECT i, CASE WHEN i % 9 > 0 THEN repeat('ü', i % 50) END, i / 3.0, "
      "'2026-01-01'::timestamptz + i * interval '1.5 s' FROM generate_series(1, 20000) i");
  EXPECT_EQ(Computed(on, columns_), BySql(on, columns_));
}

TEST_F(PutDigestTest, IsLeftToTheStoreWhereATextIsNotCertain) {
  auto on = Open("put_digest_left");
  on.Execute(
      "CREATE TABLE public.t (id bigint, name text, f float8, at timestamptz); "
      "INSERT INTO public.t SELECT i, 'a', 1, NULL FROM generate_series(1, 3000) i");
  on.Execute("UPDATE public.t SET f = 1e20 WHERE id = 1500");
  EXPECT_EQ(Computed(on, columns_), std::nullopt);
  auto columns = columns_;
  columns[1].source_type = columnar::kJsonb;
  EXPECT_EQ(Computed(on, columns), std::nullopt);
  tests::Cluster::Shared().Connect().Execute(
      "CREATE DATABASE put_digest_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  auto latin1 = OpenStore(tests::Cluster::Shared().Dsn("put_digest_latin1"),
                          base::Deadline::After(std::chrono::seconds(30)));
  EXPECT_EQ(PutDigest::Begin(latin1, columns_), nullptr);
}

}  // namespace
}  // namespace tidemark::temporal
