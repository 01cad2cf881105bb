// Every Arrow type that another writer may choose, into a real server: the column that it becomes
// and the value that stands there.
#include <arrow/api.h>
#include <arrow/extension/json.h>
#include <arrow/extension/uuid.h>
#include <arrow/json/from_string.h>
#include <arrow/util/float16.h>
#include <gmock/gmock.h>

#include <fstream>

#include "base/error.h"
#include "columnar/batch_cutter.h"
#include "columnar/copy_encoder.h"
#include "tests/cluster.h"
#include "wire/copy_binary.h"

namespace tidemark::columnar {
namespace {

using arrow::TimeUnit;

template <typename T>
T Must(arrow::Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::Array> Json(const std::shared_ptr<arrow::DataType>& type,
                                   const std::string& text) {
  return Must(arrow::json::ArrayFromJSONString(type, text));
}

class Foreign : public testing::Test {
 protected:
  Foreign()
      : store_(pg::Connection::Open({.dsn = Database()},
                                    base::Deadline::After(std::chrono::seconds(30)))) {}

  // "TYPE: VALUE|VALUE" of a one-column table that was loaded with `array`; NULL is "-".
  std::string Stored(const arrow::Field& field, const std::shared_ptr<arrow::Array>& array) {
    const auto batch = arrow::RecordBatch::Make(
        arrow::schema({field.WithNullable(field.nullable())}), array->length(), {array});
    const CopyEncoder encoder(batch->schema());
    const std::string type = encoder.columns().at(0).type_sql;
    store_.Execute("DROP TABLE IF EXISTS t; CREATE TABLE t (n serial, x " + type + ")");
    std::string out;
    wire::CopyBinaryWriter writer(out);
    writer.WriteHeader();
    encoder.WriteBatch(*batch, out);
    writer.WriteTrailer();
    const auto file = folder_.path() / "rows";
    std::ofstream(file, std::ios::binary) << out;
    store_.Execute("COPY t (x) FROM '" + file.string() + "' (FORMAT binary)");
    return type + ": " +
           store_.Value("SELECT string_agg(coalesce(x::text, '-'), '|' ORDER BY n) FROM t");
  }
  std::string Stored(const std::shared_ptr<arrow::Array>& array) {
    return Stored(*arrow::field("x", array->type()), array);
  }
  std::string Stored(const std::shared_ptr<arrow::DataType>& type, const std::string& json) {
    return Stored(Json(type, json));
  }

  base::Error ErrorOf(const std::shared_ptr<arrow::Array>& array) {
    try {
      const auto batch =
          arrow::RecordBatch::Make(arrow::schema({arrow::field("x", array->type())}),
                                   array->length(), {array});
      std::string out;
      CopyEncoder(batch->schema()).WriteBatch(*batch, out);
    } catch (const base::Error& error) {
      return error;
    }
    return base::Error(base::kInternalError, "no error");
  }

  tests::TemporaryFolder folder_;
  pg::Connection store_;

 private:
  static std::string Database() {
    static int number = 0;
    return tests::Cluster::Shared().CreateDatabase("foreign_" + std::to_string(++number));
  }
};

TEST_F(Foreign, IntegersOfEveryWidthKeepTheirEnds) {
  EXPECT_EQ(Stored(arrow::int8(), "[-128, null, 127]"), "smallint: -128|-|127");
  EXPECT_EQ(Stored(arrow::uint8(), "[0, 255]"), "smallint: 0|255");
  EXPECT_EQ(Stored(arrow::int16(), "[-32768]"), "smallint: -32768");
  EXPECT_EQ(Stored(arrow::uint16(), "[65535]"), "integer: 65535");
  EXPECT_EQ(Stored(arrow::uint32(), "[4294967295]"), "bigint: 4294967295");
  EXPECT_EQ(Stored(arrow::int64(), "[-9223372036854775808]"), "bigint: -9223372036854775808");
  EXPECT_EQ(Stored(arrow::uint64(), "[18446744073709551615, 0, null]"),
            "numeric(20,0): 18446744073709551615|0|-");
}

TEST_F(Foreign, FloatsAndDecimalsKeepEveryDigit) {
  arrow::HalfFloatBuilder halves;
  ASSERT_TRUE(halves.Append(arrow::util::Float16(1.5F).bits()).ok());
  ASSERT_TRUE(halves.Append(arrow::util::Float16(-0.0F).bits()).ok());
  ASSERT_TRUE(halves.Append(arrow::util::Float16(65504.0F).bits()).ok());
  EXPECT_EQ(Stored(Must(halves.Finish())), "real: 1.5|-0|65504");
  EXPECT_EQ(Stored(arrow::float64(), "[0.1, -0.0, 1e308]"), "double precision: 0.1|-0|1e+308");
  EXPECT_EQ(Stored(arrow::decimal32(9, 2), R"(["-1234567.89"])"), "numeric(9,2): -1234567.89");
  EXPECT_EQ(Stored(arrow::decimal64(18, 0), R"(["999999999999999999"])"),
            "numeric(18,0): 999999999999999999");
  EXPECT_EQ(Stored(arrow::decimal128(38, 10), R"(["1.0000000000", "0.0000000001"])"),
            "numeric(38,10): 1.0000000000|0.0000000001");
  EXPECT_EQ(Stored(arrow::decimal256(76, 38), R"(["-1.50000000000000000000000000000000000000"])"),
            "numeric(76,38): -1.50000000000000000000000000000000000000");
  arrow::Decimal128Builder hundreds(arrow::decimal128(5, -2));
  ASSERT_TRUE(hundreds.Append(arrow::Decimal128(12345)).ok());
  EXPECT_EQ(Stored(Must(hundreds.Finish())), "numeric(5,-2): 1234500");
}

TEST_F(Foreign, TextAndBytesOfEveryLayout) {
  for (const auto& type : {arrow::utf8(), arrow::large_utf8(), arrow::utf8_view()}) {
    EXPECT_EQ(Stored(type, R"(["", "a long text beyond twelve bytes", null, "é"])"),
              "text: |a long text beyond twelve bytes|-|é");
  }
  for (const auto& type : {arrow::binary(), arrow::large_binary(), arrow::binary_view()}) {
    EXPECT_EQ(Stored(type, R"(["", "abc", null])"), "bytea: \\x|\\x616263|-");
  }
  EXPECT_EQ(Stored(arrow::fixed_size_binary(3), R"(["abc", null])"), "bytea: \\x616263|-");
}

TEST_F(Foreign, DatesAndTimesOfEveryUnit) {
  EXPECT_EQ(Stored(arrow::boolean(), "[true, false, null]"), "boolean: true|false|-");
  EXPECT_EQ(Stored(arrow::date64(), "[86400000, -86400000]"), "date: 1970-01-02|1969-12-31");
  EXPECT_EQ(Stored(arrow::time32(TimeUnit::SECOND), "[86399]"),
            "time without time zone: 23:59:59");
  EXPECT_EQ(Stored(arrow::time32(TimeUnit::MILLI), "[1]"), "time without time zone: 00:00:00.001");
  EXPECT_EQ(Stored(arrow::time64(TimeUnit::NANO), "[1000]"),
            "time without time zone: 00:00:00.000001");
  EXPECT_EQ(Stored(arrow::timestamp(TimeUnit::SECOND), "[0, -1]"),
            "timestamp without time zone: 1970-01-01 00:00:00|1969-12-31 23:59:59");
  EXPECT_EQ(Stored(arrow::timestamp(TimeUnit::MILLI), "[1]"),
            "timestamp without time zone: 1970-01-01 00:00:00.001");
  store_.Execute("SET TimeZone = 'UTC'");
  EXPECT_EQ(Stored(arrow::timestamp(TimeUnit::NANO, "Europe/Berlin"), "[-1000, null]"),
            "timestamp with time zone: 1969-12-31 23:59:59.999999+00|-");
  EXPECT_EQ(Stored(arrow::duration(TimeUnit::MILLI), "[90061001]"), "interval: 25:01:01.001");
  EXPECT_EQ(Stored(arrow::month_interval(), "[14]"), "interval: 1 year 2 mons");
  EXPECT_EQ(Stored(arrow::day_time_interval(), "[[3, 1500]]"), "interval: 3 days 00:00:01.5");
}

TEST_F(Foreign, ListsOfEveryLayoutAreArrays) {
  const std::string values = "[[1, null], null, [], [3, 4]]";
  for (const auto& type : {arrow::list(arrow::uint16()), arrow::large_list(arrow::uint16()),
                           arrow::list_view(arrow::uint16()),
                           arrow::large_list_view(arrow::uint16())}) {
    EXPECT_EQ(Stored(type, values), "integer[]: {1,NULL}|-|{}|{3,4}") << type->ToString();
    EXPECT_EQ(Stored(Json(type, values)->Slice(3)), "integer[]: {3,4}") << type->ToString();
  }
  EXPECT_EQ(Stored(arrow::fixed_size_list(arrow::utf8(), 2), R"([["a", null], null])"),
            "text[]: {a,NULL}|-");
  EXPECT_EQ(Stored(arrow::list(arrow::uint64()), "[[18446744073709551615]]"),
            "numeric(20,0)[]: {18446744073709551615}");
}

TEST_F(Foreign, NestedValuesAreJsonb) {
  const auto point = arrow::struct_({arrow::field("x", arrow::int64()),
                                     arrow::field("when", arrow::timestamp(TimeUnit::NANO)),
                                     arrow::field("data", arrow::binary())});
  EXPECT_EQ(Stored(point, R"([[9007199254740993, 1, "a\""], [null, null, null], null])"),
            R"(jsonb: {"x": 9007199254740993, "data": "\\x6122", "when": )"
            R"("1970-01-01T00:00:00.000000001"}|{"x": null, "data": null, "when": null}|-)");
  EXPECT_EQ(Stored(arrow::list(arrow::list(arrow::int32())), "[[[1], null, []]]"),
            "jsonb: [[1], null, []]");
  EXPECT_EQ(Stored(arrow::map(arrow::utf8(), arrow::int32()), R"([[["a", 1], ["b", null]]])"),
            R"(jsonb: {"a": 1, "b": null})");
  EXPECT_EQ(Stored(arrow::map(arrow::int32(), arrow::utf8()), R"([[[1, "a"]]])"),
            R"(jsonb: [{"key": 1, "value": "a"}])");
  EXPECT_EQ(Stored(arrow::struct_({arrow::field("d", arrow::decimal128(5, 2))}),
                   R"([["1.50"]])"),
            R"(jsonb: {"d": 1.50})");
}

TEST_F(Foreign, DictionariesAndRunsAreTheirValues) {
  const auto words = Must(arrow::DictionaryArray::FromArrays(
      arrow::dictionary(arrow::int8(), arrow::utf8()), Json(arrow::int8(), "[1, 0, null, 2]"),
      Json(arrow::utf8(), R"(["a", "b", null])")));
  EXPECT_EQ(Stored(words), "text: b|a|-|-");
  const auto runs = Must(arrow::RunEndEncodedArray::Make(5, Json(arrow::int32(), "[2, 3, 5]"),
                                                         Json(arrow::int64(), "[7, null, 9]")));
  EXPECT_EQ(Stored(runs), "bigint: 7|7|-|9|9");
  EXPECT_EQ(Stored(runs->Slice(1, 3)), "bigint: 7|-|9");
  EXPECT_EQ(Stored(Json(arrow::null(), "[null, null]")), "text: -|-");
}

TEST_F(Foreign, UuidAndJsonExtensionsAreTheirTypes) {
  const std::string bytes = "0123456789abcdef";
  const auto storage = Json(arrow::fixed_size_binary(16), "[\"" + bytes + "\", null]");
  EXPECT_EQ(Stored(arrow::ExtensionType::WrapArray(arrow::extension::uuid(), storage)),
            "uuid: 30313233-3435-3637-3839-616263646566|-");
  const auto named = arrow::field("x", storage->type(), true,
                                  arrow::key_value_metadata({"ARROW:extension:name"},
                                                            {"arrow.uuid"}));
  EXPECT_EQ(Stored(*named, storage), "uuid: 30313233-3435-3637-3839-616263646566|-");
  const auto json = arrow::ExtensionType::WrapArray(arrow::extension::json(arrow::utf8()),
                                                    Json(arrow::utf8(), R"(["{\"a\" : 1}"])"));
  EXPECT_EQ(Stored(json), R"(json: {"a" : 1})");
}

TEST_F(Foreign, WhatDoesNotFitIsRefusedByColumnAndRow) {
  const auto expect = [this](const std::shared_ptr<arrow::Array>& array, const char* state) {
    const base::Error error = ErrorOf(array);
    EXPECT_EQ(error.state().view(), state) << array->type()->ToString() << error.Full();
    EXPECT_THAT(error.context(), testing::ElementsAre("column \"x\" of row 2"));
  };
  expect(Json(arrow::timestamp(TimeUnit::NANO), "[1000, 1001]"), "22008");
  expect(Json(arrow::timestamp(TimeUnit::SECOND), "[0, 9223372036854775807]"), "22008");
  expect(Json(arrow::time64(TimeUnit::NANO), "[0, 1]"), "22008");
  expect(Json(arrow::duration(TimeUnit::NANO), "[0, 1]"), "22008");
  expect(Json(arrow::date64(), "[0, 1]"), "22008");
  expect(Json(arrow::map(arrow::utf8(), arrow::int8()), R"([[], [["a", 1], ["a", 2]]])"), "0A000");
  arrow::LargeStringBuilder text;
  ASSERT_TRUE(text.Append("a").ok());
  ASSERT_TRUE(text.Append("\xff").ok());
  expect(Must(text.Finish()), "22021");
}

TEST_F(Foreign, ATypeWithoutAColumnIsRefusedBeforeAnyRow) {
  const auto state = [](const std::shared_ptr<arrow::DataType>& type) {
    try {
      ColumnOf(*arrow::field("x", type));
    } catch (const base::Error& error) {
      EXPECT_THAT(error.message(), testing::HasSubstr("\"x"));
      return error.state().str();
    }
    return std::string("no error");
  };
  EXPECT_EQ(state(arrow::sparse_union({arrow::field("a", arrow::int8())}, {0})), "0A000");
  EXPECT_EQ(state(arrow::list(arrow::dense_union({arrow::field("a", arrow::int8())}, {0}))),
            "0A000");
  EXPECT_EQ(state(arrow::struct_({arrow::field("a", arrow::int8()),
                                  arrow::field("a", arrow::int8())})),
            "0A000");
}

TEST_F(Foreign, CutBatchesHaveEveryRowOnceWithinBounds) {
  arrow::StringBuilder texts;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(texts.Append(std::string(static_cast<size_t>(i % 50 == 0 ? 5000 : 5), 'x')).ok());
  }
  const auto schema = arrow::schema({arrow::field("x", arrow::utf8())});
  BatchCutter cutter(schema, {.rows_max = 100, .bytes_max = 8000});
  cutter.Give(arrow::RecordBatch::Make(schema, 1000, {Must(texts.Finish())}));
  int64_t rows = 0;
  while (const auto piece = cutter.Take()) {
    EXPECT_LE(piece->num_rows(), 100);
    const auto& ordinals = static_cast<const arrow::Int64Array&>(*piece->column(0));
    EXPECT_EQ(ordinals.Value(0), rows + 1);
    int64_t bytes = 0;
    const auto& values = static_cast<const arrow::StringArray&>(*piece->column(1));
    for (int64_t i = 0; i < values.length(); ++i) bytes += values.value_length(i);
    EXPECT_LE(bytes, 8000);
    rows += piece->num_rows();
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_THROW(BatchCutter(arrow::schema({arrow::field("_ordinal", arrow::int8())})),
               base::Error);
}

}  // namespace
}  // namespace tidemark::columnar
