#include "cli/config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/yaml_reader.h"

namespace tidemark::cli {
namespace {

std::optional<std::string> Environment(const std::string& name) {
  if (name == "SHOP_DSN") return "postgres://app:secret@db.example/shop";
  return std::nullopt;
}

Config Read(const std::string& text) { return ReadConfig(text, "tidemark.yaml", Environment); }

std::string ComplaintOf(const std::string& text) {
  try {
    Read(text);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.state().view(), "F0000");
    return error.message();
  }
  return "";
}

// The example of the design, section 8.
constexpr const char* kExample = R"(store: embedded
sources:
  shop:   {postgres: "${SHOP_DSN}"}
  crm:    {adbc: {driver: adbc_driver_sqlite, uri: "file:crm.db"}}
  lake:   {files: "exports/"}
mirrors:
  shop:   {source: shop, publication: tidemark}
datasets:
  crm.customers: {source: crm,  relation: customers, strategy: snapshot, key: [id]}
  shop.audit:    {source: shop, relation: public.audit, strategy: cursor, cursor: audit_id, key: [audit_id]}
  lake.prices:   {source: lake, relation: "prices-*.parquet", strategy: snapshot, key: [sku, day]}
cadence: "*/15 * * * *"
)";

TEST(Config, ReadsTheExampleOfTheDesign) {
  const auto config = Read(kExample);
  EXPECT_FALSE(config.store_dsn.has_value());
  ASSERT_EQ(config.sources.size(), 3u);
  EXPECT_EQ(*config.FindSource("shop")->dsn(), "postgres://app:secret@db.example/shop");
  EXPECT_EQ(config.FindSource("lake")->dsn(), nullptr);
  ASSERT_EQ(config.mirrors.size(), 1u);
  EXPECT_EQ(config.mirrors[0].publication, "tidemark");
  ASSERT_EQ(config.datasets.size(), 3u);
  EXPECT_EQ(config.datasets[1].strategy, Strategy::kCursor);
  EXPECT_EQ(config.datasets[2].key, (std::vector<std::string>{"sku", "day"}));
  EXPECT_EQ(config.cadence, "*/15 * * * *");
  EXPECT_EQ(config.gateway.port, 5480);
}

TEST(Config, AnEmptyFileIsAllDefaults) {
  EXPECT_TRUE(Read("").sources.empty());
  EXPECT_EQ(Read("# nothing\n").gateway.host, "127.0.0.1");
}

TEST(Config, NamesTheKeyThatWasProbablyMeant) {
  EXPECT_EQ(ComplaintOf("store: embedded\nmirors: {}\n"),
            "tidemark.yaml:2:1: unknown key \"mirors\" in the configuration, did you mean "
            "\"mirrors\"?");
  EXPECT_EQ(ComplaintOf("sources:\n  a: {postgers: x}\n"),
            "tidemark.yaml:2:7: unknown key \"postgers\" in source \"a\", did you mean "
            "\"postgres\"?");
  EXPECT_EQ(ComplaintOf("zzzzzz: 1\n"),
            "tidemark.yaml:1:1: unknown key \"zzzzzz\" in the configuration");
}

TEST(Config, NamesWrongTypesWhereTheyStand) {
  EXPECT_EQ(ComplaintOf("allow_volatile_store: maybe\n"),
            "tidemark.yaml:1:23: \"allow_volatile_store\" must be true or false");
  EXPECT_EQ(ComplaintOf("store: [a]\n"), "tidemark.yaml:1:8: \"store\" must be a text");
  EXPECT_EQ(ComplaintOf("sources: 3\n"),
            "tidemark.yaml:1:10: \"sources\" must be a map of keys and values");
  EXPECT_EQ(ComplaintOf("gateway: {listen: \"127.0.0.1:99999\"}\n"),
            "tidemark.yaml:1:19: \"listen\" must end with a port number from 0 to 65535");
  EXPECT_EQ(ComplaintOf("cadence: hourly\n"),
            "tidemark.yaml:1:10: \"cadence\" must be a cron expression of five fields: It has 1 "
            "fields, not 5.");
}

TEST(Config, NamesBrokenYamlAndRepeatedKeys) {
  EXPECT_EQ(ComplaintOf("store: embedded\nstore: embedded\n"),
            "tidemark.yaml:2:1: key \"store\" stands here twice");
  EXPECT_TRUE(ComplaintOf("a: [1\n").starts_with("tidemark.yaml:2:1: "));
}

TEST(Config, NamesReferencesThatLeadNowhere) {
  EXPECT_EQ(ComplaintOf("sources: {shop: {postgres: dbname=x}}\nmirrors: {m: {source: shoop}}\n"),
            "tidemark.yaml:2:23: there is no source \"shoop\", did you mean \"shop\"?");
  EXPECT_EQ(ComplaintOf("sources: {lake: {files: x}}\nmirrors: {m: {source: lake}}\n"),
            "tidemark.yaml:2:23: source \"lake\" is no PostgreSQL: only one can be mirrored");
}

TEST(Config, AsksForWhatAStrategyNeeds) {
  const std::string sources = "sources: {s: {files: x}}\n";
  EXPECT_EQ(ComplaintOf(sources + "datasets: {a.b: {source: s, relation: r, strategy: cursor, "
                                  "key: [k]}}\n"),
            "tidemark.yaml:2:17: dataset \"a.b\": \"cursor\" and \"strategy: cursor\" need each "
            "other");
  EXPECT_EQ(ComplaintOf(sources + "datasets: {a.b: {source: s, relation: r, strategy: snapshot}}"),
            "tidemark.yaml:2:17: dataset \"a.b\" needs \"key\"");
}

TEST(Config, ExpandsVariablesAndNamesTheMissingOne) {
  EXPECT_EQ(ComplaintOf("store: ${NOWHERE}\n"),
            "tidemark.yaml:1:8: environment variable \"NOWHERE\" is not set");
  std::optional<std::string> missing;
  EXPECT_EQ(Expand("a ${SHOP_DSN} $${SHOP_DSN} $x ${open", Environment, missing),
            "a postgres://app:secret@db.example/shop ${SHOP_DSN} $x ${open");
  EXPECT_FALSE(missing);
}

TEST(Config, NeverShowsASecretInAComplaint) {
  EXPECT_EQ(ComplaintOf("sources: {s: {postgres: \"password=hush host\"}}\n"),
            "tidemark.yaml:1:25: invalid connection string");
}

TEST(Config, MirrorOfAConnectionStringBearsItsDatabase) {
  Config config;
  AddMirrorOf(config, "postgres://app@db.example/My-Shop");
  EXPECT_EQ(config.mirrors.at(0).name, "My-Shop");
  EXPECT_EQ(config.mirrors.at(0).slot, "tidemark_my_shop");
}

TEST(Config, FilesForTlsAreNamedFromItsOwnFolder) {
  const auto config = ReadConfig(
      "gateway: {tls: {certificate_file: tls/a.crt, key_file: /keys/a.key}}\n", "/etc/t/t.yaml");
  EXPECT_EQ(config.gateway.tls_certificate_file, "/etc/t/tls/a.crt");
  EXPECT_EQ(config.gateway.tls_key_file, "/keys/a.key");
  EXPECT_EQ(ComplaintOf("gateway: {tls: {certificate_file: a}}\n"),
            "tidemark.yaml:1:16: \"tls\" needs \"key_file\"");
}

TEST(Config, LimitsOfTheGatewayHaveTheirRanges) {
  const auto config = Read("gateway: {limits: {sessions: 20, startup_seconds: 5}}\n");
  EXPECT_EQ(config.gateway_limits.sessions, 20u);
  EXPECT_EQ(config.gateway_limits.startup_seconds, 5u);
  EXPECT_EQ(config.gateway_limits.startups, std::nullopt);
  EXPECT_EQ(ComplaintOf("gateway: {limits: {sessions: 0}}\n"),
            "tidemark.yaml:1:30: \"sessions\" must be a whole number from 1 to 100000");
  EXPECT_EQ(ComplaintOf("gateway: {limits: {startup_bytes: 9k}}\n"),
            "tidemark.yaml:1:35: \"startup_bytes\" must be a whole number from 100 to 10000");
  EXPECT_EQ(ComplaintOf("http: {limits: {sessions: 1}}\n"),
            "tidemark.yaml:1:8: unknown key \"limits\" in \"http\"");
}

TEST(Listen, RequiresTlsWhereItIsReachableFromElsewhere) {
  const auto listen = [](const std::string& more) {
    return Read("gateway: {tls: {certificate_file: a, key_file: b" + more + "}").gateway;
  };
  EXPECT_FALSE(listen("}").RequiresTls());
  EXPECT_TRUE(listen(", required: true}").RequiresTls());
  EXPECT_TRUE(listen("}, listen: \"0.0.0.0:1\"").RequiresTls());
  EXPECT_FALSE(listen(", required: false}, listen: \"0.0.0.0:1\"").RequiresTls());
  EXPECT_FALSE(listen("}, insecure: true, listen: \"0.0.0.0:1\"").RequiresTls());
  EXPECT_FALSE(Listen{.host = "0.0.0.0"}.RequiresTls());
}

TEST(Listen, KnowsLoopbackAddresses) {
  EXPECT_TRUE(Listen{.host = "127.0.0.53"}.IsLoopback());
  EXPECT_TRUE(Listen{.host = "::1"}.IsLoopback());
  EXPECT_FALSE(Listen{.host = "0.0.0.0"}.IsLoopback());
  EXPECT_FALSE(Listen{.host = "example.org"}.IsLoopback());
}

TEST(Nearest, SwappedAndMissingLettersAreNearOthersAreNot) {
  EXPECT_EQ(Nearest("mirrosr", {"mirrors", "sources"}), "mirrors");
  EXPECT_EQ(Nearest("src", {"mirrors", "sources"}), "");
}

}  // namespace
}  // namespace tidemark::cli
