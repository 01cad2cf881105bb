// Columns that change while a relation is read.
#include "source/postgres/postgres_relation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/error.h"
#include "source/postgres/copy_reader.h"
#include "source/postgres/relation_shape.h"
#include "tests/cluster.h"
#include "tests/impatient_server.h"

namespace tidemark::source {
namespace {

using std::chrono::seconds;

Limit Soon() { return {base::Deadline::After(seconds(60)), {}}; }

pg::Connection Connect(const std::string& dsn) {
  return pg::Connection::Open({.dsn = dsn}, base::Deadline::After(seconds(30)));
}

base::SqlState StateOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const base::Error& error) {
    return error.state();
  }
  return base::SqlState("00000");
}

// The catalog as a snapshot has it and the names that COPY looks up must not differ: an int8 would
// be taken for a float8.
TEST(PostgresRelation, ColumnsStayWhatTheyWereWhileItIsRead) {
  const auto dsn = tests::Cluster::Shared().CreateDatabase("held");
  auto owner = Connect(dsn), reader = Connect(dsn);
  owner.Execute("CREATE TABLE t (id int PRIMARY KEY, a bigint, b float8); "
                "SET lock_timeout = '100ms'");
  const auto relation = ResolveRelation(reader, "t");
  const auto swap = [&] {
    owner.Execute("ALTER TABLE t RENAME a TO c; ALTER TABLE t RENAME b TO a; "
                  "ALTER TABLE t RENAME c TO b");
  };
  {
    const auto transaction = BeginRead(reader, "");
    HoldColumns(reader, relation);
    EXPECT_EQ(StateOf(swap), base::kLockNotAvailable);
  }
  swap();
  const auto transaction = BeginRead(reader, "");
  EXPECT_EQ(StateOf([&] { HoldColumns(reader, relation); }), base::kSerializationFailure);
}

// Whoever may read some columns only may not lock the table; it is read all the same.
TEST(PostgresRelation, IsReadWhereItsColumnsAreGrantedOneByOne) {
  auto& cluster = tests::Cluster::Shared();
  const auto dsn = cluster.CreateDatabase("granted");
  auto owner = Connect(dsn);
  owner.Execute("CREATE TABLE t (id int PRIMARY KEY, a bigint); INSERT INTO t VALUES (1, 2); "
                "CREATE ROLE by_column LOGIN; GRANT SELECT (id, a) ON t TO by_column");
  const auto relation = OpenPostgresRelation(
      {.dsn = dsn + " user=by_column", .relation = "public.t", .snapshot = ""});
  const auto step = relation->ReadAll({.limits = {.rows_max = 10}}, Soon())->Next(Soon());
  EXPECT_TRUE(std::holds_alternative<Batch>(step));
}

// Between two looks nothing is asked of its session.
TEST(PostgresRelation, IsReadWhereTheServerEndsWhatTakesLongOrIsIdle) {
  const auto dsn = tests::Cluster::Shared().CreateDatabase("impatient");
  auto owner = Connect(dsn);
  owner.Execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
  tests::MakeImpatient(owner, std::chrono::milliseconds(100));
  const auto relation = OpenPostgresRelation({.dsn = dsn, .relation = "public.t", .snapshot = ""});
  const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); };
  EXPECT_EQ(relation->Describe(Soon()).columns.size(), 1U);
  rest();
  const auto reader = relation->ReadAll({.limits = {.rows_max = 10}}, Soon());
  rest();
  EXPECT_TRUE(std::holds_alternative<Batch>(reader->Next(Soon())));
  rest();
  EXPECT_TRUE(std::holds_alternative<End>(reader->Next(Soon())));
}

}  // namespace
}  // namespace tidemark::source
