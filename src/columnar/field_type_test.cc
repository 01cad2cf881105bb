#include "columnar/field_type.h"

#include <arrow/extension/uuid.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "columnar/type_oid.h"

namespace tidemark::columnar {
namespace {

std::string TypeOf(const PostgresColumn& column) { return FieldOf(column)->type()->ToString(); }

// Type modifiers as PostgreSQL 15 stores them.
constexpr int32_t kNumeric10And2 = 655366;
constexpr int32_t kNumeric3AndMinus2 = 198658;
constexpr int32_t kNumeric38 = 2490372;
constexpr int32_t kNumeric76And38 = 4980778;
constexpr int32_t kNumeric77 = 5046276;
constexpr int32_t kNumeric2And4 = 131080;
constexpr int32_t kNumeric1000AndMinus1000 = 65537052;

TEST(FieldType, EveryTypeOfTheTableHasItsArrowType) {
  EXPECT_EQ(TypeOf({.type = kBool}), "bool");
  EXPECT_EQ(TypeOf({.type = kInt2}), "int16");
  EXPECT_EQ(TypeOf({.type = kInt4}), "int32");
  EXPECT_EQ(TypeOf({.type = kInt8}), "int64");
  EXPECT_EQ(TypeOf({.type = kFloat4}), "float");
  EXPECT_EQ(TypeOf({.type = kFloat8}), "double");
  for (const uint32_t text : {kText, kVarchar, kBpchar, kName, kJson, kJsonb}) {
    EXPECT_EQ(TypeOf({.type = text}), "string");
  }
  EXPECT_EQ(TypeOf({.type = kBytea}), "binary");
  EXPECT_EQ(TypeOf({.type = kDate}), "date32[day]");
  EXPECT_EQ(TypeOf({.type = kTime}), "time64[us]");
  EXPECT_EQ(TypeOf({.type = kTimestamp, .modifier = 3}), "timestamp[us]");
  EXPECT_EQ(TypeOf({.type = kTimestamptz}), "timestamp[us, tz=UTC]");
  EXPECT_EQ(TypeOf({.type = kInterval}), "month_day_nano_interval");
  EXPECT_EQ(TypeOf({.type = kUuid}), "fixed_size_binary[16]");
}

TEST(FieldType, NumericIsDecimalWhereADecimalHoldsIt) {
  EXPECT_EQ(TypeOf({.type = kNumeric}), "string");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric10And2}), "decimal128(10, 2)");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric2And4}), "decimal128(2, 4)");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric3AndMinus2}), "decimal128(5, 0)");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric38}), "decimal128(38, 0)");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric76And38}), "decimal256(76, 38)");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric77}), "string");
  EXPECT_EQ(TypeOf({.type = kNumeric, .modifier = kNumeric1000AndMinus1000}), "string");
}

TEST(FieldType, AnArrayIsAListAndADomainItsBaseType) {
  EXPECT_EQ(TypeOf({.type = ArrayOf(kNumeric), .modifier = kNumeric10And2}),
            "list<item: decimal128(10, 2)>");
  EXPECT_EQ(TypeOf({.type = 16400, .base_type = kInt4}), "int32");
  EXPECT_EQ(TypeOf({.type = 16400, .base_type = ArrayOf(kText)}), "list<item: string>");
  for (const ArrayType& type : kArrayTypes) {
    EXPECT_EQ(FieldOf({.type = type.array})->type()->id(), arrow::Type::LIST) << type.array;
  }
}

TEST(FieldType, AnyOtherTypeIsBinaryAndNamesItself) {
  constexpr uint32_t kInet = 869, kTimetz = 1266, kPoint = 600, kInt2vector = 22, kMood = 16385;
  for (const uint32_t type : {kInet, kTimetz, kPoint, kInt2vector, kMood}) {
    EXPECT_EQ(TypeOf({.type = type}), "binary");
  }
  const auto field = FieldOf({.name = "m", .type = kMood, .type_sql = "public.mood"});
  EXPECT_EQ(field->metadata()->Get(kTypeKey).ValueOrDie(), "public.mood");
  EXPECT_EQ(field->metadata()->Get(kTypeOidKey).ValueOrDie(), "16385");
}

TEST(FieldType, UuidAndJsonBearTheirExtensionNames) {
  const auto extension = [](const PostgresColumn& column) {
    return FieldOf(column)->metadata()->Get("ARROW:extension:name").ValueOr("");
  };
  EXPECT_EQ(extension({.type = kUuid}), "arrow.uuid");
  EXPECT_EQ(extension({.type = kJson}), "arrow.json");
  EXPECT_EQ(extension({.type = kJsonb}), "arrow.json");
  EXPECT_EQ(extension({.type = kText}), "");
  EXPECT_EQ(extension({.type = kUuid, .carry = Carry::kPostgres}), "");
}

TEST(FieldType, AFieldGivesItsColumnBack) {
  const PostgresColumn columns[] = {
      {.name = "a", .type = kInt4, .type_sql = "integer"},
      {.name = "b", .type = kNumeric, .modifier = kNumeric10And2, .type_sql = "numeric(10,2)"},
      {.name = "c", .type = kNumeric, .modifier = kNumeric3AndMinus2},
      {.name = "d", .type = kNumeric},
      {.name = "e", .type = kVarchar, .modifier = 9},
      {.name = "f", .type = 16400, .modifier = kNumeric10And2, .base_type = kNumeric},
      {.name = "g", .type = ArrayOf(kJsonb)},
      {.name = "h", .type = 16401, .type_sql = "public.mood"},
      {.name = "i", .type = kTimestamptz, .carry = Carry::kPostgres},
      {.name = "j", .type = kUuid},
      {.name = "k", .type = kBytea},
  };
  for (const PostgresColumn& column : columns) {
    EXPECT_EQ(ColumnOf(*FieldOf(column)), column) << column.name;
  }
}

TEST(FieldType, AFieldOfAnotherWriterGetsTheTypeThatHoldsIt) {
  EXPECT_EQ(ColumnOf(*arrow::field("a", arrow::int64())).type, kInt8);
  EXPECT_EQ(ColumnOf(*arrow::field("a", arrow::decimal128(10, 2))),
            (PostgresColumn{.name = "a",
                            .type = kNumeric,
                            .modifier = kNumeric10And2,
                            .type_sql = "numeric(10,2)"}));
  EXPECT_EQ(ColumnOf(*arrow::field("a", arrow::list(arrow::field("element", arrow::utf8())))).type,
            ArrayOf(kText));
  EXPECT_EQ(ColumnOf(*arrow::field("a", arrow::extension::uuid())).type, kUuid);
}

TEST(FieldType, WhatPostgresDoesNotHaveIsRefusedByName) {
  const auto state = [](const std::shared_ptr<arrow::Field>& field) {
    try {
      ColumnOf(*field);
    } catch (const base::Error& error) {
      EXPECT_NE(error.message().find("\"x\""), std::string::npos);
      return error.state().str();
    }
    return std::string("no error");
  };
  const auto one = arrow::field("a", arrow::int32());
  EXPECT_EQ(state(arrow::field("x", arrow::dense_union({one}))), "0A000");
  EXPECT_EQ(state(arrow::field("x", arrow::struct_({one, one}))), "0A000");
  const auto contradicting = FieldOf({.name = "x", .type = kInt4})->WithType(arrow::utf8());
  EXPECT_EQ(state(contradicting), "42804");
  const auto garbled =
      arrow::field("x", arrow::int32(), true, arrow::key_value_metadata({kTypeOidKey}, {"12x"}));
  EXPECT_EQ(state(garbled), "42804");
}

}  // namespace
}  // namespace tidemark::columnar
