#include "temporal/types.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "pg/copy.h"
#include "tests/cluster.h"
#include "wire/copy_binary.h"

namespace tidemark::temporal {
namespace {

using testing::HasSubstr;

class TypesTest : public testing::Test {
 protected:
  TypesTest() {
    static int number = 0;
    const std::string name = fmt::format("types_{}", ++number);
    source_ = Open(name);
    store_ = Open(name + "_store");
  }

  static pg::Connection Open(const std::string& database) {
    return pg::Connection::Open({.dsn = tests::Cluster::Shared().CreateDatabase(database),
                                 .settings = {{"search_path", ""}}},
                                base::Deadline::After(std::chrono::seconds(10)));
  }

  static pg::Oid OidOf(pg::Connection& connection, const std::string& type) {
    return static_cast<pg::Oid>(std::stoul(connection.Value("SELECT $1::regtype::oid", {type})));
  }

  TypeMap Ensure(const std::vector<std::string>& types) {
    std::vector<pg::Oid> oids;
    for (const auto& type : types) oids.push_back(OidOf(*source_, type));
    return EnsureTypes(*store_, pg::LoadTypes(*source_, oids));
  }

  // The values of `type` as text, after source → COPY binary → translation → store.
  std::vector<std::string> RoundTrip(const std::string& type, const std::string& values) {
    const TypeMap map = Ensure({type});
    const StoreType& plan = map.At(OidOf(*source_, type));
    EXPECT_TRUE(plan.binary);
    source_->Execute(
        fmt::format("DROP TABLE IF EXISTS public.v; CREATE TABLE public.v (v {});"
                    "INSERT INTO public.v VALUES {}",
                    type, values));
    store_->Execute(fmt::format("DROP TABLE IF EXISTS public.v; CREATE TABLE public.v (v {})",
                                map.StoreSql(OidOf(*source_, type), type)));
    Copy(plan);
    EXPECT_EQ(TextOf(*store_), TextOf(*source_)) << type;
    return TextOf(*store_);
  }

  void Copy(const StoreType& plan) {
    pg::CopyOut out(*source_, "COPY public.v TO STDOUT (FORMAT binary)");
    pg::CopyIn in(*store_, "COPY public.v FROM STDIN (FORMAT binary)");
    wire::CopyBinaryReader reader;
    std::string bytes;
    wire::CopyBinaryWriter writer(bytes);
    writer.WriteHeader();
    while (auto chunk = out.Next()) {
      reader.Feed(*chunk);
      while (reader.Next() == wire::CopyBinaryReader::Step::kRow) {
        writer.WriteRow(1);
        const auto& field = reader.fields()[0];
        if (!field) {
          writer.WriteNull();
          continue;
        }
        std::string value(*field);
        wire::Translate(plan.plan, value);
        writer.WriteField(value);
      }
    }
    writer.WriteTrailer();
    in.Write(bytes);
    in.Finish();
  }

  static std::vector<std::string> TextOf(pg::Connection& connection) {
    const auto rows = connection.Execute("SELECT v::text FROM public.v ORDER BY v::text");
    std::vector<std::string> values;
    for (int i = 0; i < rows.rows(); ++i) values.push_back(rows.optional(i, 0).value_or("NULL"));
    return values;
  }

  std::string SqlStateOf(const std::vector<std::string>& types) {
    try {
      Ensure(types);
      return "";
    } catch (const base::Error& error) {
      last_error_ = error.Full();
      return error.state().str();
    }
  }

  std::string last_error_;
  std::optional<pg::Connection> source_, store_;
};

TEST_F(TypesTest, EveryKindRoundTripsAsBytes) {
  // Types only the store has, so that no OID agrees by accident.
  store_->Execute("CREATE TYPE public.filler AS ENUM ('x'); CREATE DOMAIN public.filler2 AS int");
  source_->Execute(R"sql(
    CREATE SCHEMA "Odd schema";
    CREATE TYPE "Odd schema".mood AS ENUM ('sad', 'it''s \ fine', 'happy');
    CREATE TYPE public.inner_pair AS (n int, moods "Odd schema".mood[]);
    CREATE DOMAIN public.small AS int CHECK (VALUE < 10);
    CREATE TYPE public.outer_pair AS ("A b" public.inner_pair, d public.small,
                                      t text COLLATE "C", m numeric(10, 2));
    CREATE DOMAIN public.checked AS public.outer_pair CHECK ((VALUE).d > 0);
    CREATE TYPE public.float_range AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi,
                                             MULTIRANGE_TYPE_NAME = public.many_floats);
    CREATE TYPE public.mood_range AS RANGE (SUBTYPE = "Odd schema".mood);
    CREATE DOMAIN public.labels AS "Odd schema".mood[];
  )sql");
  RoundTrip("\"Odd schema\".mood", "('sad'), (E'it''s \\\\ fine'), (NULL)");
  RoundTrip("\"Odd schema\".mood[]", "('{sad,NULL,happy}'), ('{}'), ('[0:1]={sad,happy}')");
  RoundTrip("public.inner_pair[]", "(ARRAY[ROW(1, '{sad}')::public.inner_pair, NULL])");
  RoundTrip("public.checked", "(ROW(ROW(1, '{happy}'), 7, 'x', 1)::public.outer_pair)");
  RoundTrip("public.checked[]",
            "(ARRAY[ROW(ROW(1, NULL), 7, NULL, 1)::public.outer_pair]"
            "::public.checked[])");
  RoundTrip("public.float_range", "('[1.5,2)'), ('empty'), ('(,)')");
  RoundTrip("public.many_floats", "('{[1,2),[3,4)}'), ('{}')");
  RoundTrip("public.many_floats[]", "('{\"{[1,2)}\"}')");
  RoundTrip("public.mood_range[]", "('{\"[sad,happy]\"}')");
  RoundTrip("public.labels", "('{sad}')");
  RoundTrip("int4multirange[]", "('{\"{[1,2)}\"}')");
  RoundTrip("numeric(10,2)[]", "('{1,NULL}')");
}

TEST_F(TypesTest, ExtensionTypesComeWithTheirExtension) {
  source_->Execute(
      "CREATE EXTENSION hstore SCHEMA public; CREATE SCHEMA ext;"
      "CREATE EXTENSION citext SCHEMA ext;"
      "CREATE TYPE public.tagged AS (t ext.citext, h public.hstore)");
  RoundTrip("public.hstore", "('a=>1, b=>NULL'), ('')");
  RoundTrip("ext.citext[]", "('{A,b}')");
  RoundTrip("public.tagged", "(ROW('X', 'a=>1')::public.tagged)");
  EXPECT_EQ(store_->Value("SELECT extnamespace::regnamespace FROM pg_extension"
                          " WHERE extname = 'citext'"),
            "ext");
}

TEST_F(TypesTest, ExtensionElsewhereInTheStoreIsUsedWhereItIs) {
  source_->Execute(
      "CREATE EXTENSION citext SCHEMA public;"
      "CREATE TYPE public.tagged AS (a int, t public.citext[]);"
      "CREATE DOMAIN public.mail AS public.citext");
  store_->Execute("CREATE SCHEMA elsewhere; CREATE EXTENSION citext SCHEMA elsewhere");
  RoundTrip("public.citext[]", "('{A,b}')");
  RoundTrip("public.tagged", "(ROW(1, '{X}')::public.tagged)");
  RoundTrip("public.mail", "('a@B')");
  Ensure({"public.tagged", "public.mail"});  // what was made is recognized as equal
}

TEST_F(TypesTest, SecondCallMakesNothing) {
  source_->Execute(
      "CREATE TYPE public.mood AS ENUM ('a', 'b');"
      "CREATE TYPE public.pair AS (m public.mood, n numeric(10, 2));"
      "CREATE DOMAIN public.d AS varchar(7) COLLATE \"C\" CHECK (VALUE <> 'x');"
      "CREATE TYPE public.r AS RANGE (SUBTYPE = text, COLLATION = \"C\")");
  const std::vector<std::string> types = {"public.pair[]", "public.d", "public.r"};
  Ensure(types);
  const auto before = store_->Value("SELECT max(oid::bigint) FROM pg_type");
  Ensure(types);
  EXPECT_EQ(store_->Value("SELECT max(oid::bigint) FROM pg_type"), before);
}

TEST_F(TypesTest, DomainsRefuseNothingInTheStore) {
  source_->Execute("CREATE DOMAIN public.small AS int DEFAULT 3 NOT NULL CHECK (VALUE < 10)");
  Ensure({"public.small"});
  EXPECT_EQ(store_->Value("SELECT 11::public.small"), "11");
  EXPECT_EQ(store_->Value("SELECT coalesce(NULL::public.small, 0)"), "0");
}

TEST_F(TypesTest, EnumGainsLabelsInTheirPlace) {
  store_->Execute("CREATE TYPE public.mood AS ENUM ('b', 'd')");
  source_->Execute("CREATE TYPE public.mood AS ENUM ('a', 'b', 'c', 'd', 'e')");
  Ensure({"public.mood"});
  EXPECT_EQ(store_->Value("SELECT enum_range(NULL::public.mood)"), "{a,b,c,d,e}");
}

TEST_F(TypesTest, LabelThatTheSourceLostIsKept) {
  store_->Execute("CREATE TYPE public.mood AS ENUM ('a', 'b', 'c')");
  source_->Execute("CREATE TYPE public.mood AS ENUM ('a', 'c')");
  EXPECT_EQ(SqlStateOf({"public.mood"}), "");
  EXPECT_EQ(store_->Value("SELECT enum_range(NULL::public.mood)"), "{a,b,c}");
}

TEST_F(TypesTest, CompositeGainsAttributesAtItsEnd) {
  store_->Execute(
      "CREATE TYPE public.pair AS (a int); CREATE TABLE public.used (p public.pair);"
      "INSERT INTO public.used VALUES (ROW(1))");
  source_->Execute("CREATE TYPE public.pair AS (a int, b text)");
  Ensure({"public.pair"});
  EXPECT_EQ(store_->Value("SELECT p FROM public.used"), "(1,)");
}

TEST_F(TypesTest, DifferentTypesOfOneNameAreRefusedByName) {
  store_->Execute(
      "CREATE TYPE public.turned AS ENUM ('a', 'b');"
      "CREATE TYPE public.pair AS (a int); CREATE DOMAIN public.d AS int;"
      "CREATE TYPE public.r AS RANGE (SUBTYPE = int4);"
      "CREATE DOMAIN public.kind AS int");
  source_->Execute(
      "CREATE TYPE public.turned AS ENUM ('b', 'a');"
      "CREATE TYPE public.pair AS (a bigint); CREATE DOMAIN public.d AS text;"
      "CREATE TYPE public.r AS RANGE (SUBTYPE = int8);"
      "CREATE TYPE public.kind AS ENUM ('x')");
  for (const char* type :
       {"public.turned", "public.pair", "public.d", "public.r", "public.kind"}) {
    EXPECT_EQ(SqlStateOf({type}), "42710") << type;
    EXPECT_THAT(last_error_, HasSubstr(type));
  }
}

TEST_F(TypesTest, EnumKeepsALabelThatTheSourceCallsOtherwiseNow) {
  store_->Execute("CREATE TYPE public.mood AS ENUM ('a', 'b', 'z')");
  source_->Execute("CREATE TYPE public.mood AS ENUM ('a', 'c', 'z')");
  Ensure({"public.mood"});
  EXPECT_EQ(store_->Value("SELECT enum_range(NULL::public.mood)"), "{a,c,b,z}");
}

TEST_F(TypesTest, TypeWithoutBinaryFormTravelsAsText) {
  source_->Execute(
      "CREATE EXTENSION cube SCHEMA public; CREATE TYPE public.boxed AS (c public.cube)");
  const auto map = Ensure({"public.boxed[]"});
  const bool cube_is_binary =
      source_->Value("SELECT typsend <> 0 FROM pg_type WHERE typname = 'cube'") == "t";
  EXPECT_EQ(map.At(OidOf(*source_, "public.boxed[]")).binary, cube_is_binary);
}

TEST_F(TypesTest, UnavailableExtensionIsNamed) {
  source_->Execute("CREATE EXTENSION citext SCHEMA public");
  auto types = pg::LoadTypes(*source_, std::vector<pg::Oid>{OidOf(*source_, "public.citext")});
  types.back().extension = "of_old";
  try {
    EnsureTypes(*store_, types);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state(), base::kUndefinedObject);
    EXPECT_THAT(error.message(), HasSubstr("\"of_old\""));
  }
}

}  // namespace
}  // namespace tidemark::temporal
