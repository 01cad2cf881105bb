#include "columnar/batch_reader.h"

#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "columnar/row_stream.h"
#include "columnar/type_oid.h"
#include "wire/hex_literal.h"

namespace tidemark::columnar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using wire::operator""_hex;

const PostgresColumn kId{.name = "id", .type = kInt4};
const PostgresColumn kNote{.name = "note", .type = kText};

// COPY of (id int4, n numeric(10,2), t text, a int4[], j jsonb, ts timestamptz) by PostgreSQL 15.
const std::vector<PostgresColumn> kSixColumns = {
    {.name = "id", .type = kInt4}, {.name = "n", .type = kNumeric, .modifier = 655366},
    {.name = "t", .type = kText},  {.name = "a", .type = ArrayOf(kInt4)},
    {.name = "j", .type = kJsonb}, {.name = "ts", .type = kTimestamptz},
};
const std::string kSixColumnStream =
    "5047434f50590aff0d0a00000000000000000000060000000400000001"
    "0000000a0001000000000002000100000002c3a90000002000000001000000010000001700000002"
    "000000010000000400000001ffffffff0000000c017b2261223a206e756c6c7d"
    "00000008000304684a1f061400060000000400000002ffffffffffffffffffffffffffffffffffffffff"
    "000600000004000000030000000a0001ffff400000020064000000000000000c000000000000000000000017"
    "00000005016e756c6c00000008fffca2fec4c82000ffff"_hex;

std::vector<Row> Numbered(int32_t count) {
  std::vector<Row> rows;
  for (int32_t i = 0; i < count; ++i) {
    std::string id(4, '\0');
    wire::StoreBigEndian(id.data(), i);
    rows.push_back({id, "row"});
  }
  return rows;
}

std::vector<int64_t> Ordinals(const arrow::RecordBatch& batch) {
  const auto& array = static_cast<const arrow::Int64Array&>(*batch.column(0));
  return {array.raw_values(), array.raw_values() + array.length()};
}

base::Error ErrorOf(const PostgresColumn& column, const std::string& value) {
  const PostgresColumn columns[] = {kId, column};
  BatchReader reader(columns, {}, 40);
  const Row rows[] = {{"00000001"_hex, std::nullopt}, {"00000002"_hex, value}};
  try {
    ReadBatches(reader, StreamOf(rows));
  } catch (const base::Error& error) {
    return error;
  }
  return base::Error(base::kInternalError, "no error");
}

TEST(BatchReader, ReadsWhatPostgresWrote) {
  BatchReader reader(kSixColumns);
  const Batches batches = ReadBatches(reader, kSixColumnStream);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_TRUE(batches[0]->schema()->Equals(*reader.schema(), /*check_metadata=*/true));
  const auto text = [&](int column, int64_t row) {
    return batches[0]->column(column)->GetScalar(row).ValueOrDie()->ToString();
  };
  EXPECT_THAT(Ordinals(*batches[0]), ElementsAre(1, 2, 3));
  EXPECT_EQ(text(2, 0), "1.00");
  EXPECT_EQ(text(2, 2), "-0.01");
  EXPECT_EQ(text(3, 0), "é");
  EXPECT_EQ(text(3, 2), "");
  EXPECT_EQ(text(5, 0), R"({"a": null})");
  EXPECT_EQ(text(5, 2), "null");
  EXPECT_THAT(text(6, 0), HasSubstr("2026-11-29 12:34:56.789012"));
  EXPECT_THAT(text(6, 2), HasSubstr("1970-01-01 00:00:00.000000"));
  const auto& lists = static_cast<const arrow::ListArray&>(*batches[0]->column(4));
  EXPECT_EQ(lists.value_length(0), 2);
  EXPECT_EQ(lists.value_length(2), 0);
  for (int column = 2; column < 7; ++column) {
    EXPECT_TRUE(batches[0]->column(column)->IsNull(1));
    EXPECT_TRUE(batches[0]->column(column)->IsValid(2));
  }
}

TEST(BatchReader, ChunksOfAnySizeGiveTheSameBatches) {
  BatchReader whole(kSixColumns);
  const Batches expected = ReadBatches(whole, kSixColumnStream);
  for (size_t size = 1; size < kSixColumnStream.size(); ++size) {
    BatchReader reader(kSixColumns);
    const Batches batches = ReadBatches(reader, kSixColumnStream, size);
    ASSERT_EQ(batches.size(), 1U);
    EXPECT_TRUE(batches[0]->Equals(*expected[0])) << size;
  }
}

TEST(BatchReader, RowsLimitABatchAndOrdinalsCountOn) {
  const PostgresColumn columns[] = {kId, kNote};
  BatchReader reader(columns, {.rows_max = 2}, 100);
  const Batches batches = ReadBatches(reader, StreamOf(Numbered(5)));
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_THAT(Ordinals(*batches[0]), ElementsAre(100, 101));
  EXPECT_THAT(Ordinals(*batches[1]), ElementsAre(102, 103));
  EXPECT_THAT(Ordinals(*batches[2]), ElementsAre(104));
  EXPECT_EQ(reader.next_ordinal(), 105);
}

TEST(BatchReader, BytesLimitABatchAsTheyStandInArrow) {
  const PostgresColumn columns[] = {kId, kNote};
  BatchReader reader(columns, {.bytes_max = 20});
  EXPECT_EQ(ReadBatches(reader, StreamOf(Numbered(4))).size(), 2U);

  // Ten bytes on the wire, 16 KiB as text.
  const PostgresColumn wide[] = {{.name = "n", .type = kNumeric}};
  BatchReader wide_reader(wide, {.bytes_max = 20 * 1024});
  const std::vector<Row> rows(3, Row{"0001 0fff 0000 0000 0001"_hex});
  EXPECT_EQ(ReadBatches(wide_reader, StreamOf(rows)).size(), 2U);
}

TEST(BatchReader, ACopyWithoutRowsHasNoBatch) {
  BatchReader reader(std::span(&kId, 1));
  EXPECT_TRUE(ReadBatches(reader, StreamOf(std::span<const Row>())).empty());
  EXPECT_EQ(reader.Next(), BatchReader::Step::kEnd);
  EXPECT_THROW(reader.TakeBatch(), base::Error);
}

TEST(BatchReader, ACopyThatIsCutOffIsRefused) {
  BatchReader reader(kSixColumns);
  const std::string_view cut(kSixColumnStream.data(), kSixColumnStream.size() - 2);
  EXPECT_THROW(ReadBatches(reader, cut), base::Error);
}

TEST(BatchReader, RowsOfOtherColumnsAreRefused) {
  BatchReader reader(std::span(&kId, 1));
  try {
    ReadBatches(reader, StreamOf(Numbered(1)));
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kProtocolViolation);
  }
}

TEST(BatchReader, LimitsBelowOneAreRefused) {
  EXPECT_THROW(BatchReader(std::span(&kId, 1), {.rows_max = 0}), base::Error);
  EXPECT_THROW(BatchReader(std::span(&kId, 1), {.bytes_max = 0}), base::Error);
}

TEST(BatchReader, AValueWithoutArrowValueIsRefusedWithColumnAndOrdinal) {
  const struct {
    PostgresColumn column;
    std::string value;
    const char* state;
  } values[] = {
      {{.type = kDate}, "7fffffff"_hex, "22008"},
      {{.type = kDate}, "80000000"_hex, "22008"},
      {{.type = kTimestamp}, "7fffffffffffffff"_hex, "22008"},
      {{.type = kTimestamptz}, "8000000000000000"_hex, "22008"},
      {{.type = kTimestamp}, "7ffca2fec4c82000"_hex, "22008"},  // 294247-01-10 04:00:54.775808
      {{.type = kTimestamp}, "7fffff5bb3b29fff"_hex, "22008"},  // 294276-12-31 23:59:59.999999
      {{.type = kTime}, "000000141dd76000"_hex, "22008"},       // 24:00:00
      {{.type = kInterval}, "7fffffffffffffff 00000000 00000000"_hex, "22008"},
      {{.type = kInterval}, "0020c49ba5e353f8 00000000 00000000"_hex, "22008"},
      {{.type = kNumeric, .modifier = 655366}, "0000 0000 c000 0000"_hex, "0A000"},       // NaN
      {{.type = kNumeric, .modifier = 655366}, "0001 0000 0000 0000 0001"_hex, "0A000"},  // 1
      {{.type = kNumeric, .modifier = 655366}, "0001 0002 0000 0002 0001"_hex, "0A000"},  // 10^8
      {{.type = ArrayOf(kInt4)},  // {{1,NULL},{3,4}}
       "00000002 00000001 00000017 00000002 00000001 00000002 00000001 00000004 00000001 ffffffff "
       "00000004 00000003 00000004 00000004"_hex,
       "0A000"},
      {{.type = ArrayOf(kInt4)},  // [0:1]={1,NULL}
       "00000001 00000001 00000017 00000002 00000000 00000004 00000001 ffffffff"_hex,
       "0A000"},
      {{.type = kText}, "61ff"_hex, "22021"},
  };
  for (const auto& [column, value, state] : values) {
    PostgresColumn named = column;
    named.name = "x";
    const base::Error error = ErrorOf(named, value);
    EXPECT_EQ(error.state().view(), state) << error.Full();
    EXPECT_THAT(error.context(), ElementsAre("column \"x\" of row 41"));
    EXPECT_FALSE(error.hint().empty()) << error.Full();
    named.carry = Carry::kPostgres;
    EXPECT_EQ(ErrorOf(named, value).message(), "no error");
  }
}

TEST(BatchReader, BytesThatNoServerSendsAreRefused) {
  const std::pair<uint32_t, std::string> values[] = {
      {kBool, "02"_hex},
      {kBool, ""_hex},
      {kInt4, "000001"_hex},
      {kInt4, "0000000100"_hex},
      {kDate, "ffda97cc 00"_hex},
      {kTime, "ffffffffffffffff"_hex},
      {kTimestamp, "8000000000000001"_hex},
      {kUuid, "a0eebc999c0b4ef8bb6d6bb9bd380a"_hex},
      {kJsonb, "02 31"_hex},
      {kJsonb, ""_hex},
      {ArrayOf(kInt4), "00000001 00000000 00000017 00000001 00000001 ffffffff"_hex},
      {ArrayOf(kInt4), "00000001 00000001 00000017 00000001 00000001 fffffffe"_hex},
      {ArrayOf(kInt4), "00000001 00000000 00000017 00000000 00000001"_hex},
      {ArrayOf(kInt4), "00000001 00000002 00000017 00000001 00000001 ffffffff"_hex},
      {ArrayOf(kInt4), "00000001 00000000 00000017 7fffffff 00000001"_hex},
      {ArrayOf(kInt4), "00000007 00000000 00000017"_hex},
      {ArrayOf(kInt4), "00000000 00000000 00000017 00"_hex},
  };
  for (const auto& [type, value] : values) {
    const base::Error error = ErrorOf({.name = "x", .type = type}, value);
    EXPECT_EQ(error.state(), base::kInvalidBinary) << type << error.Full();
  }
  EXPECT_EQ(
      ErrorOf({.name = "x", .type = ArrayOf(kInt4)}, "00000000 00000000 00000019"_hex).state(),
      base::kDatatypeMismatch);
}

}  // namespace
}  // namespace tidemark::columnar
