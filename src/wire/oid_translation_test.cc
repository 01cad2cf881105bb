// Values are the bytes that PostgreSQL 15 made with array_send, record_send, range_send and
// multirange_send, for these types:
//   CREATE TYPE mood AS ENUM ('sad','ok');                       0x4001
//   CREATE DOMAIN posint AS int;                                 0x4006
//   CREATE TYPE point2 AS (x int, m mood);                       0x403a
//   CREATE TYPE shape AS (label text, pts point2[], p posint);   0x403d, point2[] 0x4039
//   CREATE TYPE moodrange AS RANGE (subtype = mood);
//   CREATE TYPE pointrange AS RANGE (subtype = point2);          0x404b
//   CREATE DOMAIN nice AS mood;                                  0x4056
//   CREATE DOMAIN nicepoint AS point2;                           0x4058
#include "wire/oid_translation.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "wire/hex_literal.h"

namespace tidemark::wire {
namespace {

using Kind = TypeNode::Kind;

// In the store every user-defined type has its OID plus 0x10000.
TypeNode Builtin(uint32_t oid) { return {Kind::kScalar, oid, oid, {}}; }
TypeNode User(Kind kind, uint32_t oid, std::vector<TypeNode> children = {}) {
  return {kind, oid, oid + 0x10000, std::move(children)};
}
TypeNode ArrayOf(TypeNode element) { return User(Kind::kArray, 0x4fff, {std::move(element)}); }

const TypeNode kInt = Builtin(0x17);
const TypeNode kMood = User(Kind::kScalar, 0x4001);
const TypeNode kPoint = User(Kind::kComposite, 0x403a, {kInt, kMood});
const TypeNode kShape =
    User(Kind::kComposite, 0x403d,
         {Builtin(0x19), User(Kind::kArray, 0x4039, {kPoint}), User(Kind::kScalar, 0x4006)});
const TypeNode kMoodRange = User(Kind::kRange, 0x4041, {kMood});
const TypeNode kPointRange = User(Kind::kRange, 0x404b, {kPoint});
const TypeNode kPointMultirange = User(Kind::kMultirange, 0x4049, {kPointRange});

struct Case {
  const char* name;  // the value in SQL
  TypeNode type;
  std::string value;
  std::string translated;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"ARRAY['sad',NULL,'ok']::mood[]", ArrayOf(kMood),
       "00000001 00000001 00004001 00000003 00000001 00000003736164 ffffffff 000000026f6b"_hex,
       "00000001 00000001 00014001 00000003 00000001 00000003736164 ffffffff 000000026f6b"_hex},
      {"'{}'::mood[]", ArrayOf(kMood), "00000000 00000000 00004001"_hex,
       "00000000 00000000 00014001"_hex},
      {"'[0:1][-1:0]={{sad,ok},{NULL,ok}}'::mood[]", ArrayOf(kMood),
       "00000002 00000001 00004001 00000002 00000000 00000002 ffffffff"
       "00000003736164 000000026f6b ffffffff 000000026f6b"_hex,
       "00000002 00000001 00014001 00000002 00000000 00000002 ffffffff"
       "00000003736164 000000026f6b ffffffff 000000026f6b"_hex},
      {"ARRAY['ok']::nice[]", ArrayOf(User(Kind::kScalar, 0x4056)),
       "00000001 00000000 00004056 00000001 00000001 000000026f6b"_hex,
       "00000001 00000000 00014056 00000001 00000001 000000026f6b"_hex},
      {"ARRAY[(1,'ok')]::nicepoint[]", ArrayOf(User(Kind::kComposite, 0x4058, {kInt, kMood})),
       "00000001 00000000 00004058 00000001 00000001 0000001a"
       "00000002 00000017 00000004 00000001 00004001 000000026f6b"_hex,
       "00000001 00000000 00014058 00000001 00000001 0000001a"
       "00000002 00000017 00000004 00000001 00014001 000000026f6b"_hex},
      {"('s', ARRAY[(1,'ok'), NULL, (NULL,'sad')], 5)::shape", kShape,
       "00000003 00000019 00000001 73 00004039 00000051"
       "00000001 00000001 0000403a 00000003 00000001"
       "0000001a 00000002 00000017 00000004 00000001 00004001 000000026f6b"
       "ffffffff"
       "00000017 00000002 00000017 ffffffff 00004001 00000003736164"
       "00004006 00000004 00000005"_hex,
       "00000003 00000019 00000001 73 00014039 00000051"
       "00000001 00000001 0001403a 00000003 00000001"
       "0000001a 00000002 00000017 00000004 00000001 00014001 000000026f6b"
       "ffffffff"
       "00000017 00000002 00000017 ffffffff 00014001 00000003736164"
       "00014006 00000004 00000005"_hex},
      {"(NULL,NULL,NULL)::shape", kShape,
       "00000003 00000019 ffffffff 00004039 ffffffff 00004006 ffffffff"_hex,
       "00000003 00000019 ffffffff 00014039 ffffffff 00014006 ffffffff"_hex},
      {"ARRAY[('s',ARRAY[(1,'ok')],5), ('','{}',NULL)]::shape[]", ArrayOf(kShape),
       "00000001 00000000 0000403d 00000002 00000001"
       "00000053 00000003 00000019 00000001 73 00004039 00000032"
       "00000001 00000000 0000403a 00000001 00000001"
       "0000001a 00000002 00000017 00000004 00000001 00004001 000000026f6b"
       "00004006 00000004 00000005"
       "00000028 00000003 00000019 00000000 00004039 0000000c"
       "00000000 00000000 0000403a 00004006 ffffffff"_hex,
       "00000001 00000000 0001403d 00000002 00000001"
       "00000053 00000003 00000019 00000001 73 00014039 00000032"
       "00000001 00000000 0001403a 00000001 00000001"
       "0000001a 00000002 00000017 00000004 00000001 00014001 000000026f6b"
       "00014006 00000004 00000005"
       "00000028 00000003 00000019 00000000 00014039 0000000c"
       "00000000 00000000 0001403a 00014006 ffffffff"_hex},
      {"(1,'ok')::gap, which lost its middle column", User(Kind::kComposite, 0x4054, {kInt, kMood}),
       "00000002 00000017 00000004 00000001 00004001 000000026f6b"_hex,
       "00000002 00000017 00000004 00000001 00014001 000000026f6b"_hex},
      {"'[sad,ok]'::moodrange", kMoodRange, "06 00000003736164 000000026f6b"_hex,
       "06 00000003736164 000000026f6b"_hex},
      {"'empty'::moodrange", kMoodRange, "01"_hex, "01"_hex},
      {"'(,)'::moodrange", kMoodRange, "18"_hex, "18"_hex},
      {"'(sad,)'::moodrange", kMoodRange, "10 00000003736164"_hex, "10 00000003736164"_hex},
      {"pointrange((1,'sad'), (2,NULL))", kPointRange,
       "02 0000001b 00000002 00000017 00000004 00000001 00004001 00000003736164"
       "00000018 00000002 00000017 00000004 00000002 00004001 ffffffff"_hex,
       "02 0000001b 00000002 00000017 00000004 00000001 00014001 00000003736164"
       "00000018 00000002 00000017 00000004 00000002 00014001 ffffffff"_hex},
      {"pointmultirange((,(1,'sad')), [(2,'ok'),))", kPointMultirange,
       "00000002"
       "00000020 08 0000001b 00000002 00000017 00000004 00000001 00004001 00000003736164"
       "0000001f 12 0000001a 00000002 00000017 00000004 00000002 00004001 000000026f6b"_hex,
       "00000002"
       "00000020 08 0000001b 00000002 00000017 00000004 00000001 00014001 00000003736164"
       "0000001f 12 0000001a 00000002 00000017 00000004 00000002 00014001 000000026f6b"_hex},
      {"'{}'::pointmultirange", kPointMultirange, "00000000"_hex, "00000000"_hex},
      {"ARRAY[pointrange((1,'sad'),(2,NULL)), NULL]", ArrayOf(kPointRange),
       "00000001 00000001 0000404b 00000002 00000001"
       "0000003c 02 0000001b 00000002 00000017 00000004 00000001 00004001 00000003736164"
       "00000018 00000002 00000017 00000004 00000002 00004001 ffffffff"
       "ffffffff"_hex,
       "00000001 00000001 0001404b 00000002 00000001"
       "0000003c 02 0000001b 00000002 00000017 00000004 00000001 00014001 00000003736164"
       "00000018 00000002 00000017 00000004 00000002 00014001 ffffffff"
       "ffffffff"_hex},
      {"'{1,NULL}'::int[]", ArrayOf(kInt),
       "00000001 00000001 00000017 00000002 00000001 00000004 00000001 ffffffff"_hex,
       "00000001 00000001 00000017 00000002 00000001 00000004 00000001 ffffffff"_hex},
  };
  return cases;
}

void ExpectThrows(const TypeNode& type, std::string value, base::SqlState state) {
  try {
    Translate(type, value);
    ADD_FAILURE() << "accepted " << value.size() << " bytes";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), state) << error.what();
  }
}
void ExpectMalformed(const TypeNode& type, std::string value) {
  ExpectThrows(type, std::move(value), base::kInvalidBinary);
}

TypeNode Inverse(TypeNode type) {
  std::swap(type.source_oid, type.store_oid);
  for (TypeNode& child : type.children) child = Inverse(child);
  return type;
}

TEST(Translate, EveryEmbeddedOidBecomesTheStoresAndNothingElseChanges) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    std::string value = c.value;
    Translate(c.type, value);
    EXPECT_EQ(value, c.translated);
    Translate(Inverse(c.type), value);
    EXPECT_EQ(value, c.value);
  }
}

TEST(Translate, TruncatedAtAnyByteThrows22P03) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    for (size_t size = 0; size < c.value.size(); ++size) {
      ExpectMalformed(c.type, c.value.substr(0, size));
    }
  }
}

TEST(Translate, ByteTooManyThrows22P03) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    ExpectMalformed(c.type, c.value + "x");
  }
}

TEST(Translate, OidThatIsNotTheSourcesThrows22P03) {
  for (const Case& c : Cases()) {
    if (c.value == c.translated) continue;
    SCOPED_TRACE(c.name);
    ExpectMalformed(c.type, c.translated);
  }
}

TEST(Translate, ScalarIsLeftAlone) {
  std::string value = "00004001"_hex;
  Translate(kMood, value);
  EXPECT_EQ(value, "00004001"_hex);
}

TypeNode Text(bool replace, Kind kind = Kind::kText) {
  TypeNode text = Builtin(0x19);
  text.kind = kind;
  text.replace = replace;
  return text;
}

TEST(Translate, TextThatIsNotUtf8Throws22021OrIsReplacedInItsPlace) {
  ExpectThrows(Text(false), "caf\xe9", base::kCharacterNotInRepertoire);
  std::string value = "caf\xe9 \xc3\xa9";
  Translate(Text(true), value);
  EXPECT_EQ(value, "caf? \xc3\xa9");
  Translate(Text(false), value);  // now it is fit
  EXPECT_TRUE(NeedsTranslation(Text(false)));
}

TEST(Translate, TextInsideOtherValuesIsFoundAndItsLengthKept) {
  const auto array = ArrayOf(Text(true));
  std::string value =
      "00000001 00000001 00000019 00000003 00000001 00000002 61ff ffffffff 00000002 c3a9"_hex;
  Translate(array, value);
  EXPECT_EQ(value,
            "00000001 00000001 00000019 00000003 00000001 00000002 613f ffffffff 00000002 "
            "c3a9"_hex);
  const auto composite = User(Kind::kComposite, 0x403a, {kInt, Text(false), kMood});
  ExpectThrows(composite,
               "00000003 00000017 00000004 ff000001 00000019 00000001 ff 00004001 ffffffff"_hex,
               base::kCharacterNotInRepertoire);
  const auto jsonb = Text(true, Kind::kVersionedText);
  value = "01 22 ff 22"_hex;
  Translate(jsonb, value);
  EXPECT_EQ(value, "01 22 3f 22"_hex);
  ExpectMalformed(jsonb, "");
}

TEST(Translate, InfiniteIntervalsThrow22008AndOthersStay) {
  TypeNode interval = Builtin(0x4a2);
  interval.kind = Kind::kFiniteInterval;
  EXPECT_TRUE(NeedsTranslation(interval));
  for (const auto& finite :
       {"7fffffffffffffff 7fffffff 7ffffffe"_hex, "0000000000000000 00000000 00000001"_hex,
        "8000000000000000 80000000 7fffffff"_hex}) {
    std::string value = finite;
    Translate(interval, value);
    EXPECT_EQ(value, finite);
  }
  ExpectThrows(interval, "7fffffffffffffff 7fffffff 7fffffff"_hex, base::kDatetimeOverflow);
  ExpectThrows(interval, "8000000000000000 80000000 80000000"_hex, base::kDatetimeOverflow);
  ExpectMalformed(interval, "8000000000000000 80000000 800000"_hex);
}

TEST(Translate, ImpossibleArraysThrow22P03) {
  const TypeNode array = ArrayOf(kMood);
  ExpectMalformed(array, "00000007 00000000 00004001"_hex);
  ExpectMalformed(array, "ffffffff 00000000 00004001"_hex);
  ExpectMalformed(array, "00000000 00000002 00004001"_hex);
  ExpectMalformed(array, "00000001 00000000 00004001 ffffffff 00000001"_hex);
  ExpectMalformed(array, "00000001 00000001 00004001 00000001 00000001 fffffffe"_hex);
  // 2^31-1 to the third power elements in no bytes.
  ExpectMalformed(
      array,
      "00000003 00000000 00004001 7fffffff 00000001 7fffffff 00000001 7fffffff 00000001"_hex);
}

TEST(Translate, ArrayWithAnEmptyDimensionIsEmpty) {
  std::string value = "00000002 00000000 00004001 7fffffff 00000001 00000000 00000001"_hex;
  Translate(ArrayOf(kMood), value);
  EXPECT_EQ(value, "00000002 00000000 00014001 7fffffff 00000001 00000000 00000001"_hex);
}

TEST(Translate, CompositeWithAnotherNumberOfColumnsThrows22P03) {
  ExpectMalformed(kPoint, "00000001 00000017 ffffffff"_hex);
  ExpectMalformed(kPoint, "ffffffff"_hex);
  ExpectMalformed(kPoint, "00000003 00000017 ffffffff 00004001 ffffffff 00000017 ffffffff"_hex);
}

TEST(Translate, RangeWithUnknownFlagsOrNullBoundThrows22P03) {
  ExpectMalformed(kMoodRange, "20 00000003736164 000000026f6b"_hex);
  ExpectMalformed(kMoodRange, "06 ffffffff 000000026f6b"_hex);
  ExpectMalformed(kPointMultirange, "00000001 ffffffff"_hex);
  ExpectMalformed(kPointMultirange, "80000000"_hex);
}

TEST(Translate, PlanWithoutItsPartIsABugAndSaysSo) {
  ExpectThrows({Kind::kArray, 1, 1, {}}, "00000000 00000000 00000001"_hex, base::kInternalError);
  ExpectThrows({Kind::kRange, 1, 1, {}}, "01"_hex, base::kInternalError);
}

TEST(NeedsTranslation, OnlyForOidsThatValuesEmbed) {
  EXPECT_FALSE(NeedsTranslation(kInt));
  EXPECT_FALSE(NeedsTranslation(kMood));
  EXPECT_FALSE(NeedsTranslation(ArrayOf(kInt)));
  EXPECT_FALSE(NeedsTranslation(kMoodRange)) << "a range does not name its subtype";
  EXPECT_TRUE(NeedsTranslation(ArrayOf(kMood)));
  EXPECT_TRUE(NeedsTranslation(kPoint));
  EXPECT_TRUE(NeedsTranslation(kShape));
  EXPECT_TRUE(NeedsTranslation(kPointRange));
  EXPECT_TRUE(NeedsTranslation(kPointMultirange));
  EXPECT_TRUE(NeedsTranslation(ArrayOf(kMoodRange)));
}

}  // namespace
}  // namespace tidemark::wire
