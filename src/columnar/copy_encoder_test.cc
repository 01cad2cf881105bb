#include "columnar/copy_encoder.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/extension/uuid.h>
#include <arrow/type.h>
#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "columnar/numeric.h"
#include "columnar/row_stream.h"
#include "columnar/type_oid.h"
#include "wire/hex_literal.h"

namespace tidemark::columnar {
namespace {

using testing::ElementsAre;
using wire::operator""_hex;

struct TypeValues {
  PostgresColumn column;
  std::vector<std::string> values;
};

// As PostgreSQL 15 sends them.
std::vector<TypeValues> EdgeValues() {
  return {
      {{.type = kBool}, {"00"_hex, "01"_hex}},
      {{.type = kInt2}, {"8000"_hex, "7fff"_hex}},
      {{.type = kInt4}, {"80000000"_hex, "7fffffff"_hex, "00000000"_hex}},
      {{.type = kInt8}, {"8000000000000000"_hex, "7fffffffffffffff"_hex}},
      // -0, NaN, 1.5; then -216237.00000035969, 0.1 + 0.2, -0, NaN, Infinity
      {{.type = kFloat4}, {"80000000"_hex, "7fc00000"_hex, "3fc00000"_hex}},
      {{.type = kFloat8},
       {"c10a656800003047"_hex, "3fd3333333333334"_hex, "8000000000000000"_hex,
        "7ff8000000000000"_hex, "7ff0000000000000"_hex}},
      // 1.00, -99999999.99, 0.00 of numeric(10,2)
      {{.type = kNumeric, .modifier = 655366},
       {"0001 0000 0000 0002 0001"_hex, "0003 0001 4000 0002 270f 270f 26ac"_hex,
        "0000 0000 0000 0002"_hex}},
      // 1200 of numeric(3,-2), 0.0099 of numeric(2,4)
      {{.type = kNumeric, .modifier = 198658}, {"0001 0000 0000 0000 04b0"_hex}},
      {{.type = kNumeric, .modifier = 131080}, {"0001 ffff 0000 0004 0063"_hex}},
      // all nines of numeric(38,0) and numeric(76,38)
      {{.type = kNumeric, .modifier = 2490372},
       {"000a 0009 0000 0000 0063 270f 270f 270f 270f 270f 270f 270f 270f 270f"_hex}},
      {{.type = kNumeric, .modifier = 4980778},
       {"0014 0009 0000 0026 0063 270f 270f 270f 270f 270f 270f 270f 270f 270f 270f 270f 270f"
        "270f 270f 270f 270f 270f 270f 26ac"_hex}},
      // 17.685, 1e-1000, NaN, ±Infinity
      {{.type = kNumeric},
       {"0002 0000 0000 0003 0011 1ac2"_hex, "0001 ff06 0000 03e8 0001"_hex,
        "0000 0000 c000 0000"_hex, "0000 0000 d000 0020"_hex, "0000 0000 f000 0020"_hex}},
      {{.type = kText}, {"", "é", "c2a0"_hex, "NULL"}},
      {{.type = kVarchar, .modifier = 9}, {"", "abcde"}},
      {{.type = kBpchar, .modifier = 8}, {"ab  "}},
      {{.type = kName}, {"abc"}},
      {{.type = kBytea}, {"", "deadbeef"_hex, "00ff00"_hex, std::string(1 << 20, '\xff')}},
      // 4713-01-01 BC, 0001-01-01, 1970-01-01, 5874897-12-31
      {{.type = kDate}, {"ffda97cd"_hex, "fff4dbf9"_hex, "ffffd533"_hex, "7fda970c"_hex}},
      {{.type = kTime}, {"0000000000000000"_hex, "000000141dd75fff"_hex}},
      // 4713-01-01 BC, 0001-01-01, 294247-01-10 04:00:54.775807
      {{.type = kTimestamp},
       {"fd0f7fbdaf17e000"_hex, "ff1fe2ffc59c6000"_hex, "7ffca2fec4c81fff"_hex}},
      {{.type = kTimestamptz}, {"00030463784e1714"_hex}},
      // 1 mon 30 days 24:00:00, -1 mon -1 day -00:00:00.000001, 178000000 years,
      // 2562047:47:16.854775
      {{.type = kInterval},
       {"000000141dd76000 0000001e 00000001"_hex, "ffffffffffffffff ffffffff ffffffff"_hex,
        "0000000000000000 00000000 7f50c600"_hex, "0020c49ba5e353f7 00000000 00000000"_hex}},
      {{.type = kUuid}, {"a0eebc999c0b4ef8bb6d6bb9bd380a11"_hex}},
      {{.type = kJson}, {R"({"a" : 1, "a":2, "u":"\u0000"})", "null"}},
      {{.type = kJsonb},
       {"\x01{\"a\": null}", "\x01null", "\x01\"x\"",
        "\x01"
        "18446744073709551623"}},
      // {"NULL",NULL,"a b","\"q\"","\\",""}, {U+00A0}, {}
      {{.type = ArrayOf(kText)},
       {"00000001 00000001 00000019 00000006 00000001 00000004 4e554c4c ffffffff 00000003 612062 "
        "00000003 227122 00000001 5c 00000000"_hex,
        "00000001 00000000 00000019 00000001 00000001 00000002 c2a0"_hex,
        "00000000 00000000 00000019"_hex}},
      // {1.50,NULL,NaN}
      {{.type = ArrayOf(kNumeric)},
       {"00000001 00000001 000006a4 00000003 00000001 0000000c 000200000000000200011388 ffffffff "
        "00000008 00000000c0000000"_hex}},
      {{.type = ArrayOf(kJsonb)},
       {"00000001 00000001 00000eda 00000003 00000001 0000000c 017b2261223a206e756c6c7d ffffffff "
        "00000005 016e756c6c"_hex}},
      {{.type = ArrayOf(kInterval)},
       {"00000001 00000001 000004a2 00000002 00000001 00000010 0000000000000000 00000001 00000000 "
        "ffffffff"_hex}},
      // 12:00+05:45 of timetz, an enum's label, [0:1]={1,NULL}, infinity
      {{.type = 1266}, {"0000000a0eebb000 ffffaf24"_hex}},
      {{.type = 16390}, {"happy"}},
      {{.type = ArrayOf(kInt4), .carry = Carry::kPostgres},
       {"00000001 00000001 00000017 00000002 00000000 00000004 00000001 ffffffff"_hex}},
      {{.type = kTimestamp, .carry = Carry::kPostgres}, {"7fffffffffffffff"_hex}},
  };
}

TEST(CopyEncoder, EveryTypeComesBackByteForByteWithItsNulls) {
  for (TypeValues& type : EdgeValues()) {
    type.column.name = "x";
    std::vector<Row> rows{{std::nullopt}};
    for (const std::string& value : type.values) {
      rows.push_back({value});
      rows.push_back({std::nullopt});
    }
    const std::string stream = StreamOf(rows);
    BatchReader reader(std::span(&type.column, 1), {.rows_max = 3});
    const Batches batches = ReadBatches(reader, stream);
    EXPECT_EQ(StreamOf(reader.schema(), batches), stream) << type.column.type;
  }
}

// All edge values at once, rows drawn at random.
struct Drawn {
  std::vector<PostgresColumn> columns;
  std::vector<Row> rows;
};

Drawn DrawRows(size_t count) {
  Drawn drawn;
  const std::vector<TypeValues> types = EdgeValues();
  for (const TypeValues& type : types) drawn.columns.push_back(type.column);
  std::mt19937 random(7);
  for (size_t i = 0; i < count; ++i) {
    Row& row = drawn.rows.emplace_back();
    for (const TypeValues& type : types) {
      const size_t at = random() % (type.values.size() + 1);
      const bool is_null = at == type.values.size() || type.values[at].size() > 1000;
      row.push_back(is_null ? std::nullopt : std::optional(type.values[at]));
    }
  }
  return drawn;
}

TEST(CopyEncoder, BigBatchesComeBackByteForByte) {
  const Drawn drawn = DrawRows(5000);
  const std::string stream = StreamOf(drawn.rows);
  BatchReader reader(drawn.columns);
  const Batches batches = ReadBatches(reader, stream, 4096);
  EXPECT_EQ(batches.size(), 1U);
  EXPECT_TRUE(StreamOf(reader.schema(), batches) == stream);
}

TEST(CopyEncoder, SlicesGiveExactlyTheirRows) {
  const Drawn drawn = DrawRows(50);
  BatchReader reader(drawn.columns);
  const Batches batches = ReadBatches(reader, StreamOf(drawn.rows));
  ASSERT_EQ(batches.size(), 1U);
  for (const auto& [offset, length] : {std::pair(0, 50), {1, 7}, {13, 1}, {49, 1}, {20, 0}}) {
    const auto begin = drawn.rows.begin() + offset;
    EXPECT_TRUE(StreamOf(reader.schema(), {batches[0]->Slice(offset, length)}) ==
                StreamOf(std::vector<Row>(begin, begin + length)));
  }
}

TEST(CopyEncoder, DecimalsOfRandomDigitsComeBackByteForByte) {
  std::mt19937 random(11);
  for (const auto& [precision, scale] :
       {std::pair(4, 0), {10, 2}, {18, 5}, {19, 7}, {38, 0}, {38, 37}, {39, 1}, {76, 38}, {3, 5}}) {
    const int32_t modifier = (precision << 16 | scale) + 4;
    const PostgresColumn column{.name = "n", .type = kNumeric, .modifier = modifier};
    std::vector<Row> rows;
    for (int i = 0; i < 500; ++i) {
      std::string digits, value;
      const auto count = static_cast<int>(random() % static_cast<uint32_t>(precision + 1));
      for (int k = 0; k < count; ++k) digits += "0009991234567800"[random() % 16];
      WriteNumeric(
          {.negative = random() % 2 == 0, .digits = digits, .point = count - scale, .scale = scale},
          value);
      rows.push_back({value});
    }
    BatchReader reader(std::span(&column, 1));
    const std::string stream = StreamOf(rows);
    EXPECT_TRUE(StreamOf(reader.schema(), ReadBatches(reader, stream)) == stream) << precision;
  }
}

TEST(CopyEncoder, ANullBitWithoutNullIsDroppedAsPostgresDoes) {
  // ('{1,NULL}'::int4[])[1:1] keeps the bit of the array that it was cut from.
  const PostgresColumn column{.name = "a", .type = ArrayOf(kInt4)};
  const Row sliced[] = {{"00000001 00000001 00000017 00000001 00000001 00000004 00000001"_hex}};
  const Row plain[] = {{"00000001 00000000 00000017 00000001 00000001 00000004 00000001"_hex}};
  BatchReader reader(std::span(&column, 1));
  EXPECT_EQ(StreamOf(reader.schema(), ReadBatches(reader, StreamOf(sliced))), StreamOf(plain));
}

TEST(CopyEncoder, TheOrdinalIsWrittenOnRequest) {
  const PostgresColumn column{.name = "t", .type = kText};
  const Row rows[] = {{"a"}, {std::nullopt}};
  const Row with_ordinals[] = {{"0000000000000007"_hex, "a"},
                               {"0000000000000008"_hex, std::nullopt}};
  BatchReader reader(std::span(&column, 1), {}, 7);
  const Batches batches = ReadBatches(reader, StreamOf(rows));
  EXPECT_EQ(StreamOf(reader.schema(), batches), StreamOf(rows));
  EXPECT_EQ(StreamOf(reader.schema(), batches, {.write_ordinal = true}), StreamOf(with_ordinals));
}

TEST(CopyEncoder, ExtensionArraysAreWrittenByTheirStorage) {
  arrow::FixedSizeBinaryBuilder builder(arrow::fixed_size_binary(16));
  const std::string uuid = "a0eebc999c0b4ef8bb6d6bb9bd380a11"_hex;
  ASSERT_TRUE(builder.Append(uuid).ok());
  const auto array =
      arrow::ExtensionType::WrapArray(arrow::extension::uuid(), builder.Finish().ValueOrDie());
  const auto schema = arrow::schema({arrow::field("u", array->type())});
  const Row rows[] = {{uuid}};
  EXPECT_EQ(StreamOf(schema, {arrow::RecordBatch::Make(schema, 1, {array})}), StreamOf(rows));
}

base::Error ErrorOf(const std::shared_ptr<arrow::Array>& array, bool with_ordinal) {
  arrow::Int64Builder ordinals;
  EXPECT_TRUE(ordinals.AppendValues({70, 71}).ok());
  arrow::FieldVector fields{arrow::field("x", array->type())};
  arrow::ArrayVector arrays{array};
  if (with_ordinal) {
    fields.insert(fields.begin(), arrow::field(kOrdinalName, arrow::int64(), false));
    arrays.insert(arrays.begin(), ordinals.Finish().ValueOrDie());
  }
  const auto schema = arrow::schema(fields);
  std::string out = "before";
  try {
    CopyEncoder(schema).WriteBatch(*arrow::RecordBatch::Make(schema, 2, arrays), out);
  } catch (const base::Error& error) {
    EXPECT_EQ(out, "before");
    return error;
  }
  return base::Error(base::kInternalError, "no error");
}

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> NullThen(Builder&& builder, const Value& value) {
  EXPECT_TRUE(builder.AppendNull().ok());
  EXPECT_TRUE(builder.Append(value).ok());
  return builder.Finish().ValueOrDie();
}

TEST(CopyEncoder, WhatPostgresCannotHoldIsRefusedWithColumnAndOrdinal) {
  arrow::MemoryPool* const pool = arrow::default_memory_pool();
  const auto micro = arrow::TimeUnit::MICRO;
  const std::pair<std::shared_ptr<arrow::Array>, const char*> arrays[] = {
      {NullThen(arrow::Date32Builder(), INT32_MAX), "22008"},
      {NullThen(arrow::Date32Builder(), INT32_MIN), "22008"},
      {NullThen(arrow::TimestampBuilder(arrow::timestamp(micro), pool), INT64_MIN), "22008"},
      {NullThen(arrow::Time64Builder(arrow::time64(micro), pool), int64_t{86400000000}), "22008"},
      {NullThen(arrow::MonthDayNanoIntervalBuilder(),
                arrow::MonthDayNanoIntervalType::MonthDayNanos{0, 0, 1}),
       "22008"},
      {NullThen(arrow::StringBuilder(), std::string("a\0b", 3)), "22021"},
  };
  for (const auto& [array, state] : arrays) {
    const base::Error error = ErrorOf(array, true);
    EXPECT_EQ(error.state().view(), state) << error.Full();
    EXPECT_THAT(error.context(), ElementsAre("column \"x\" of row 71"));
    EXPECT_THAT(ErrorOf(array, false).context(), ElementsAre("column \"x\" of row 2"));
  }
}

TEST(CopyEncoder, ABatchOfAnotherSchemaIsRefused) {
  const PostgresColumn columns[] = {{.name = "a", .type = kInt4}, {.name = "a", .type = kText}};
  BatchReader ints(std::span(columns, 1)), texts(std::span(columns + 1, 1));
  const Row rows[] = {{"00000001"_hex}};
  const Batches batches = ReadBatches(ints, StreamOf(rows));
  EXPECT_THROW(StreamOf(texts.schema(), batches), base::Error);
}

}  // namespace
}  // namespace tidemark::columnar
