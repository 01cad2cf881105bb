// A mirror seen through the gateway by a reader's tools: pg_dump, psql's \d family and
// information_schema show what they show on the source, and the plane's own schemas stand aside.
#include <fmt/format.h>

#include <fstream>
#include <regex>

#include "tests/gateway/time_travel_fixture.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CatalogOfAMirror : public ::testing::Test {
 public:
  static void SetUpTestSuite() {
    mirror_ = std::make_unique<Mirror>();
    mirror_->SetUp();
    mirror_->source_->Execute(R"(
CREATE SCHEMA sales;
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, mail varchar(80) UNIQUE,
                        born date, tags text[], profile jsonb NOT NULL);
CREATE INDEX customers_name ON customers (lower(name), born DESC) WHERE born IS NOT NULL;
COMMENT ON TABLE customers IS 'who buys; it''s important';
COMMENT ON COLUMN customers.mail IS 'as typed';
CREATE TABLE sales.orders (customer bigint NOT NULL REFERENCES customers, number int NOT NULL,
                           total numeric(12, 2), at timestamptz(3), PRIMARY KEY (customer, number));
CREATE TABLE sales.items (customer bigint, number int, line int, product text COLLATE "C",
                          PRIMARY KEY (customer, number, line),
                          CONSTRAINT of_an_order FOREIGN KEY (customer, number)
                            REFERENCES sales.orders ON DELETE CASCADE DEFERRABLE);
INSERT INTO customers SELECT i, 'name ' || i, i || '@x', NULL, '{a,b}', '{}'
FROM generate_series(1, 2000) i;
INSERT INTO sales.orders SELECT i, 1, i * 1.5, '2026-01-01' FROM generate_series(1, 1000) i;
INSERT INTO sales.items SELECT i, 1, l, E'back\\slash\ttab\n' || l
FROM generate_series(1, 1000) i, generate_series(1, 3) l;
)");
    mirror_->Start();
    mirror_->CatchUp();
    mirror_->source_->Execute(
        "UPDATE customers SET name = upper(name) WHERE id % 2 = 0; DELETE FROM sales.items WHERE "
        "line = 3");
    mirror_->CatchUp();
    mirror_->store_->Execute(R"(
DO $$ BEGIN
  CREATE ROLE gateway_reader LOGIN IN ROLE tidemark_reader;
  ALTER ROLE gateway_reader SET default_transaction_read_only = on;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
)");
    gateway_ = std::make_unique<GatewayThread>();
  }
  static void TearDownTestSuite() {
    gateway_.reset();
    mirror_->TearDown();
    mirror_.reset();
  }

 protected:
  static std::string Source() {
    return Cluster::Shared().Dsn(mirror_->source_->Value("SELECT current_database()"));
  }
  static std::string Gateway() {
    return gateway_->Dsn(mirror_->database(), "gateway_reader");
  }

  static std::string Psql(const std::string& dsn, const std::string& command) {
    std::string output;
    EXPECT_EQ(tests::Run({"psql", "-XqAt", "-P", "format=aligned", "-P", "tuples_only=off", "-d",
                          dsn, "-c",
                   command},
                  &output),
              0)
        << command << ": " << output;
    return output;
  }

  /// Runs pg_dump and returns what it says; it must succeed.
  static std::string Dump(const std::string& dsn, const std::vector<std::string>& options) {
    std::vector<std::string> command = {"pg_dump", "-d", dsn};
    command.insert(command.end(), options.begin(), options.end());
    std::string output;
    EXPECT_EQ(tests::Run(command, &output), 0) << output;
    return output;
  }

  /// A new database made from a dump's text.
  static std::string Restored(const std::string& dump) {
    static int number = 0;
    const auto dsn = Cluster::Shared().CreateDatabase(fmt::format("restored{}", ++number));
    TemporaryFolder folder;
    const auto file = folder.path() / "dump.sql";
    std::ofstream(file) << dump;
    std::string output;
    EXPECT_EQ(tests::Run({"psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", file.string()},
                         &output),
              0)
        << output;
    return dsn;
  }

  static void ExpectSameRows(const std::string& dsn) {
    for (const auto* table : {"customers", "sales.orders", "sales.items"}) {
      const auto sql = fmt::format("SELECT * FROM {} ORDER BY 1, 2, 3", table);
      EXPECT_EQ(Psql(dsn, sql), Psql(Source(), sql)) << table;
    }
  }

  static std::unique_ptr<Mirror> mirror_;
  static std::unique_ptr<GatewayThread> gateway_;
};

std::unique_ptr<Mirror> CatalogOfAMirror::mirror_;
std::unique_ptr<GatewayThread> CatalogOfAMirror::gateway_;

// Without what inheritance adds to a table's description here, and the publication at the source.
std::string Essence(const std::string& text) {
  static const std::regex extra(
      "(Number of child tables: 1 .*|Child tables: .*|Publications:\n    \"tidemark\")\n");
  return std::regex_replace(text, extra, "");
}

TEST_F(CatalogOfAMirror, PsqlDescribesWhatItDescribesOnTheSource) {
  for (const auto* command :
       {"\\d", "\\dt", "\\di", "\\dv", "\\dm", "\\ds", "\\df", "\\dT", "\\dD", "\\dd", "\\dE",
        "\\d customers", "\\d+ customers", "\\d sales.*", "\\d+ sales.orders", "\\d+ sales.items",
        "\\dt sales.*", "\\di public.*", "\\di sales.*", "\\dt public.*", "\\d customers_name",
        "\\dv public.*", "\\df public.*", "\\du", "\\l", "\\dx", "\\db", "\\dO public.*",
        "\\dc public.*", "\\dFd", "\\dL", "\\det", "\\dew", "\\des", "\\deu", "\\dy", "\\dRs"}) {
    EXPECT_EQ(Essence(Psql(Gateway(), command)), Essence(Psql(Source(), command))) << command;
  }
  EXPECT_THAT(Psql(Gateway(), "\\dt+ customers"), HasSubstr("who buys; it's important"));
  EXPECT_THAT(Psql(Gateway(), "\\dp customers"), HasSubstr("tidemark_reader=r"));
}

TEST_F(CatalogOfAMirror, ThePlaneIsRecognisableAndOutOfTheWay) {
  const auto schemas = Psql(Gateway(), R"(
SELECT nspname || ': ' || coalesce(obj_description(oid, 'pg_namespace'), 'no comment')
FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$|public$|sales$)' ORDER BY 1)");
  for (const auto* schema :
       {"tidemark", "tidemark_current", "tidemark_history", "public_history", "sales_history"}) {
    EXPECT_THAT(schemas, HasSubstr(std::string(schema) + ": Tidemark: ")) << schema;
  }
  EXPECT_THAT(schemas, Not(HasSubstr("no comment")));
  EXPECT_EQ(Psql(Gateway(), "SHOW search_path"), Psql(Source(), "SHOW search_path"));
  EXPECT_THAT(Psql(Gateway(), "\\d"), Not(HasSubstr("tidemark")));
}

TEST_F(CatalogOfAMirror, InformationSchemaShowsTablesColumnsAndKeys) {
  for (const auto* sql : {
           R"(SELECT table_schema, table_name, table_type, is_insertable_into
              FROM information_schema.tables WHERE table_schema IN ('public', 'sales')
              ORDER BY 1, 2)",
           R"(SELECT table_schema, table_name, column_name, ordinal_position, column_default,
                     is_nullable, data_type, character_maximum_length, numeric_precision,
                     numeric_scale, datetime_precision, collation_name, udt_name, dtd_identifier
              FROM information_schema.columns WHERE table_schema IN ('public', 'sales')
              ORDER BY 1, 2, 4)",
           R"(SELECT constraint_schema, constraint_name, table_name, constraint_type,
                     is_deferrable, initially_deferred, enforced
              FROM information_schema.table_constraints
              WHERE table_schema IN ('public', 'sales') AND constraint_type <> 'CHECK'
              ORDER BY 1, 2)",
           R"(SELECT constraint_name, table_name, column_name, ordinal_position,
                     position_in_unique_constraint
              FROM information_schema.key_column_usage
              WHERE table_schema IN ('public', 'sales') ORDER BY 1, 4)",
           R"(SELECT constraint_name, unique_constraint_name, match_option, update_rule, delete_rule
              FROM information_schema.referential_constraints ORDER BY 1)",
           R"(SELECT table_name, obj_description(('sales.' || table_name)::regclass)
              FROM information_schema.tables WHERE table_schema = 'sales' ORDER BY 1)",
       }) {
    const auto want = Psql(Source(), sql);
    EXPECT_THAT(want, Not(HasSubstr("(0 rows)"))) << sql;
    EXPECT_EQ(Psql(Gateway(), sql), want) << sql;
  }
}

TEST_F(CatalogOfAMirror, PgDumpOfTheTablesIsWhole) {
  const std::vector<std::string> options = {"-n", "public", "-n", "sales", "--no-owner",
                                            "--no-acl"};
  const auto restored = Restored(
      std::regex_replace(Dump(Gateway(), options), std::regex("CREATE SCHEMA public;"), ""));
  ExpectSameRows(restored);
  for (const auto* command : {"\\d customers", "\\d sales.orders", "\\d sales.items"}) {
    EXPECT_EQ(Psql(restored, command), Essence(Psql(Source(), command))) << command;
  }
}

TEST_F(CatalogOfAMirror, PgDumpOfTheSchemaIsTheSources) {
  const std::vector<std::string> options = {"-n",         "public",   "-n",      "sales",
                                            "--no-owner", "--no-acl", "--schema-only"};
  // The random word of \restrict differs from dump to dump.
  const std::regex word("\\\\(un)?restrict .*");
  EXPECT_EQ(std::regex_replace(Dump(Gateway(), options), word, ""),
            std::regex_replace(Dump(Source(), options), word, ""));
}

TEST_F(CatalogOfAMirror, PgDumpInParallelIsWhole) {
  TemporaryFolder folder;
  const auto dump = (folder.path() / "dump").string();
  Dump(Gateway(), {"-n", "public", "-n", "sales", "--no-owner", "--no-acl", "-Fd", "-j", "3", "-f",
                   dump});
  std::string text;
  ASSERT_EQ(tests::Run({"pg_restore", "-f", "-", dump}, &text), 0) << text;
  ExpectSameRows(Restored(std::regex_replace(text, std::regex("CREATE SCHEMA public;"), "")));
}

TEST_F(CatalogOfAMirror, PgDumpWithInsertsIsWhole) {
  const auto text = Dump(Gateway(), {"-n", "public", "-n", "sales", "--no-owner", "--no-acl",
                                     "--rows-per-insert=100"});
  ExpectSameRows(Restored(std::regex_replace(text, std::regex("CREATE SCHEMA public;"), "")));
}

// Copying the parents by their names and the plane's own tables too would give every row twice.
TEST_F(CatalogOfAMirror, AReadersDumpOfThePlaneItselfIsRefused) {
  std::string output;
  EXPECT_EQ(tests::Run({"pg_dump", "-d", Gateway()}, &output), 1);
  EXPECT_THAT(output, HasSubstr("permission denied for"));
}

}  // namespace
}  // namespace tidemark::tests
