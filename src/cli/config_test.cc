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
  EXPECT_FALSE(config.keep_going);
  EXPECT_EQ(config.gateway.port, 5480);
}

TEST(Config, KeepGoingIsAFlag) {
  EXPECT_TRUE(Read("keep_going: true\n").keep_going);
  EXPECT_NE(ComplaintOf("keep_going: perhaps\n").find("\"keep_going\""), std::string::npos);
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
            "tidemark.yaml:1:17: unknown key \"sessions\" in \"limits\"");
}

TEST(Config, TheHttpServerCanBeLimitedProtectedAndSwitchedOff) {
  const auto config = Read("http: {listen: \"[::1]:81\", token: \"${SHOP_DSN}\", off: true, "
                           "limits: "
                           "{connections: 9, subscribers: 3, body_bytes: 1000}}\n");
  EXPECT_EQ(config.http.host, "::1");
  EXPECT_EQ(config.http.port, 81);
  EXPECT_TRUE(config.http_serving.off);
  EXPECT_EQ(config.http_serving.token, "postgres://app:secret@db.example/shop");
  EXPECT_EQ(config.http_serving.connections, 9u);
  EXPECT_EQ(config.http_serving.subscribers, 3u);
  EXPECT_EQ(config.http_serving.body_bytes, 1000u);
  EXPECT_FALSE(Read("").http_serving.off);
  EXPECT_EQ(Read("").http.port, 8480);
  EXPECT_EQ(ComplaintOf("http: {tokn: x}\n"),
            "tidemark.yaml:1:8: unknown key \"tokn\" in \"http\", did you mean \"token\"?");
  EXPECT_EQ(ComplaintOf("http: {token: \"\"}\n"),
            "tidemark.yaml:1:15: \"token\" must not be empty");
  EXPECT_NE(ComplaintOf("http: {limits: {connections: 0}}\n"), "");
  EXPECT_NE(ComplaintOf("http: {superusers: true}\n"), "");
  EXPECT_NE(ComplaintOf("gateway: {token: x}\n"), "");
}

TEST(Config, OccurrencesNeedNoSourceWhereTheConfigurationOnlyServes) {
  const auto config = Read(R"(occurrences:
  crm.customers: {secret: "whsec_Zm9v"}
  shop.audit: {secret: [old, new], signature: stripe, tolerance: 90s, per_minute: 5}
  lake.prices: {secret: plain, signature: github}
)");
  ASSERT_EQ(config.occurrences.size(), 3u);
  const auto& standard = config.occurrences.at("crm.customers");
  EXPECT_EQ(standard.scheme, http::SignatureScheme::kStandard);
  EXPECT_EQ(standard.keys, std::vector<std::string>{"foo"});
  EXPECT_EQ(standard.tolerance, std::chrono::minutes(5));
  EXPECT_EQ(standard.per_minute, 60u);
  const auto& stripe = config.occurrences.at("shop.audit");
  EXPECT_EQ(stripe.scheme, http::SignatureScheme::kStripe);
  EXPECT_EQ(stripe.keys, (std::vector<std::string>{"old", "new"}));
  EXPECT_EQ(stripe.tolerance, std::chrono::seconds(90));
  EXPECT_EQ(stripe.per_minute, 5u);
  EXPECT_EQ(config.occurrences.at("lake.prices").scheme, http::SignatureScheme::kGithub);
}

TEST(Config, OccurrencesAreRefusedForWhatIsNotDeclaredAndForWhatIsLive) {
  const std::string above = "sources: {s: {postgres: dbname=x}}\nmirrors: {m: {source: s}}\n"
                            "datasets: {a.b: {source: s, relation: r, strategy: snapshot, key: "
                            "[k]}}\n";
  EXPECT_EQ(Read(above + "occurrences: {a.b: {secret: x}}").occurrences.size(), 1u);
  EXPECT_EQ(ComplaintOf(above + "occurrences: {a.bb: {secret: x}}"),
            "tidemark.yaml:4:21: there is no dataset \"a.bb\", did you mean \"a.b\"?");
  EXPECT_EQ(ComplaintOf(above + "occurrences: {m: {secret: x}}"),
            "tidemark.yaml:4:18: \"m\" is followed live and takes no occurrences");
  const std::string cdc = "sources: {s: {postgres: dbname=x}}\n"
                          "datasets: {a.b: {source: s, relation: p.r, strategy: cdc}}\n";
  EXPECT_EQ(ComplaintOf(cdc + "occurrences: {a.b: {secret: x}}"),
            "tidemark.yaml:3:20: \"a.b\" is followed live and takes no occurrences");
  EXPECT_EQ(Read(cdc + "cadence: \"@daily\"\noccurrences: {a.b: {secret: x}}").occurrences.size(),
            1u);
}

TEST(Config, OccurrencesNameWhatIsWrongWithThemAndNoSecret) {
  const auto complaint = [](const std::string& rules) {
    return ComplaintOf("occurrences: {a.b: {" + rules + "}}\n");
  };
  EXPECT_EQ(complaint(""), "tidemark.yaml:1:20: entry \"a.b\" of occurrences needs \"secret\"");
  EXPECT_EQ(complaint("secret: \"\""), "tidemark.yaml:1:29: the secret is empty");
  EXPECT_EQ(complaint("secret: [hush, \"whsec_hush!\"]"),
            "tidemark.yaml:1:29: what follows \"whsec_\" in the secret is no Base64");
  EXPECT_EQ(complaint("secret: hush, secret_file: x"),
            "tidemark.yaml:1:29: \"secret\" and \"secret_file\" exclude each other");
  EXPECT_EQ(complaint("secret: hush, signature: hmac"),
            "tidemark.yaml:1:46: \"signature\" must be standard, github or stripe");
  for (const char* tolerance : {"0s", "5", "m", "-5m", "2h", "5 m", "5d", "99999999999s"}) {
    EXPECT_EQ(complaint(std::string("secret: hush, tolerance: ") + tolerance),
              "tidemark.yaml:1:46: \"tolerance\" must be a time such as 90s or 5m, at most 60m")
        << tolerance;
  }
  EXPECT_EQ(complaint("secret: hush, signature: github, tolerance: 5m"),
            "tidemark.yaml:1:65: \"tolerance\" needs a signature that covers a time, which "
            "github's does not");
  EXPECT_EQ(complaint("secret: hush, per_minute: 0"),
            "tidemark.yaml:1:47: \"per_minute\" must be a whole number from 1 to 6000");
  EXPECT_EQ(complaint("secret: hush, tolerence: 5m"),
            "tidemark.yaml:1:35: unknown key \"tolerence\" in entry \"a.b\" of occurrences, did "
            "you mean \"tolerance\"?");
}

TEST(Config, WebhooksGoOutEncryptedUnlessToldOtherwise) {
  const auto config = Read(R"(webhooks:
  crm: {url: "https://hooks.example.com/in?key=hush", secret: x, datasets: [crm.customers, shop]}
  local: {url: "http://127.0.0.1:9000/", secret: x}
  lab: {url: "http://lab.example/", secret: x, insecure: true}
)");
  ASSERT_EQ(config.webhooks.size(), 3u);
  EXPECT_EQ(config.webhooks[0].url.target, "/in?key=hush");
  EXPECT_EQ(config.webhooks[0].datasets, (std::vector<std::string>{"crm.customers", "shop"}));
  EXPECT_TRUE(config.webhooks[1].datasets.empty());
  EXPECT_EQ(ComplaintOf("webhooks: {w: {url: \"http://lab.example/hush\", secret: x}}"),
            "tidemark.yaml:1:21: webhook \"w\" needs https, or an explicit \"insecure: true\"");
  EXPECT_EQ(ComplaintOf("webhooks: {w: {url: \"lab.example/hush\", secret: x}}"),
            "tidemark.yaml:1:21: the address must begin with https:// or http://");
  EXPECT_EQ(ComplaintOf("webhooks: {w: {secret: x}}"),
            "tidemark.yaml:1:15: webhook \"w\" needs \"url\"");
  EXPECT_EQ(ComplaintOf("webhooks: {w: {url: \"https://a/\"}}"),
            "tidemark.yaml:1:15: webhook \"w\" needs \"secret\"");
}

TEST(Config, MirrorsAndDatasetsOfStrategyCdcHaveCadencesRetentionsAndSlotsOfTheirOwn) {
  const auto config = Read(
      "sources: {s: {postgres: dbname=x}}\n"
      "mirrors: {m: {source: s, cadence: \"*/5 * * * *\", on_gap: stop, retention: 90d},\n"
      "          n: {source: s, encoding_errors: replace, unknown_types: text, "
      "isolate_failed_tables: true,\n"
      "              wal_warn_bytes: 3GB, table_retention: {public.audit: 5d}}}\n"
      "datasets: {a.b: {source: s, relation: public.b, strategy: cdc, retention: 2w},\n"
      "           a.c: {source: s, relation: public.c, strategy: cdc, encoding_errors: replace,\n"
      "                 unknown_types: text, on_gap: stop, isolate_failed_tables: true,\n"
      "                 wal_warn_bytes: 1GB}}\n"
      "retention: 1y\n");
  EXPECT_EQ(config.mirrors.at(0).cadence, "*/5 * * * *");
  EXPECT_FALSE(config.mirrors.at(0).following.resync_on_gap);
  EXPECT_FALSE(config.mirrors.at(0).following.replace_undecodable);
  EXPECT_FALSE(config.mirrors.at(0).following.unknown_as_text);
  EXPECT_TRUE(config.mirrors.at(1).following.replace_undecodable);
  EXPECT_TRUE(config.mirrors.at(1).following.unknown_as_text);
  EXPECT_EQ(config.mirrors.at(0).retention, "90d");
  EXPECT_FALSE(config.mirrors.at(0).following.isolate_failed_tables);
  EXPECT_TRUE(config.mirrors.at(1).following.isolate_failed_tables);
  EXPECT_FALSE(config.mirrors.at(0).following.wal_warn_bytes);
  EXPECT_EQ(config.mirrors.at(1).following.wal_warn_bytes, int64_t{3} << 30);
  EXPECT_EQ(config.mirrors.at(1).table_retention.at("public.audit"), "5d");
  EXPECT_EQ(config.datasets.at(0).publication, "tidemark_a_b");
  EXPECT_EQ(config.datasets.at(0).slot, "tidemark_a_b");
  EXPECT_EQ(config.datasets.at(0).retention, "2w");
  EXPECT_FALSE(config.datasets.at(0).following.unknown_as_text);
  const auto& following = config.datasets.at(1).following;
  EXPECT_TRUE(following.replace_undecodable && following.unknown_as_text &&
              following.isolate_failed_tables && !following.resync_on_gap);
  EXPECT_EQ(following.wal_warn_bytes, int64_t{1} << 30);
  EXPECT_EQ(config.retention, "1y");
}

TEST(Config, NamesWhatACdcDatasetAMirrorOrARetentionCannotBe) {
  const std::string above = "sources: {s: {postgres: dbname=x}, f: {files: x}}\n";
  EXPECT_EQ(ComplaintOf(above + "datasets: {a.b: {source: f, relation: p.b, strategy: cdc}}"),
            "tidemark.yaml:2:26: source \"f\" is no PostgreSQL: only one has changes to follow");
  EXPECT_EQ(ComplaintOf(above + "datasets: {a.b: {source: s, relation: b, strategy: cdc}}"),
            "tidemark.yaml:2:39: with \"strategy: cdc\" the relation must be named schema.table");
  EXPECT_EQ(ComplaintOf(above + "datasets: {a.b: {source: s, relation: p.b, strategy: cdc, key: "
                                "[k]}}"),
            "tidemark.yaml:2:64: with \"strategy: cdc\" the key is the table's own: leave \"key\" "
            "out");
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, on_gap: ignore}}"),
            "tidemark.yaml:2:34: \"on_gap\" must be resync or stop");
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, encoding_errors: ignore}}"),
            "tidemark.yaml:2:43: \"encoding_errors\" must be stop or replace");
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, unknown_types: maybe}}"),
            "tidemark.yaml:2:41: \"unknown_types\" must be refuse or text");
  EXPECT_EQ(ComplaintOf(above + "datasets: {a.b: {source: s, relation: p.b, strategy: cdc, "
                                "unknown_types: maybe}}"),
            "tidemark.yaml:2:74: \"unknown_types\" must be refuse or text");
  for (const char* option : {"on_gap: stop", "encoding_errors: replace", "unknown_types: text",
                             "isolate_failed_tables: true", "wal_warn_bytes: 1GB"}) {
    const std::string name(option, std::string(option).find(':'));
    EXPECT_EQ(ComplaintOf(above + "datasets: {a.b: {source: s, relation: b, strategy: snapshot, "
                                  "key: [k], " + option + "}}"),
              "tidemark.yaml:2:" + std::to_string(74 + name.size()) + ": \"" + name +
                  "\" needs \"strategy: cdc\"");
  }
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, cadence: \"* * * * *\", "
                                "wal_warn_bytes: 1GB}}"),
            "tidemark.yaml:2:64: \"wal_warn_bytes\" is of what is followed live: it needs no "
            "\"cadence\"");
  for (const char* size : {"0", "-1GB", "GB", "1 GB", "1gb", "1.5GB", "9999999GB"}) {
    EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, wal_warn_bytes: \"" +
                          std::string(size) + "\"}}"),
              "tidemark.yaml:2:42: \"wal_warn_bytes\" must be a size like 500MB or 10GB")
        << size;
  }
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, table_retention: {audit: 5d}}}"),
            "tidemark.yaml:2:51: table \"audit\" must be named schema.table");
  EXPECT_EQ(ComplaintOf(above + "mirrors: {m: {source: s, table_retention: {p.audit: 5}}}"),
            "tidemark.yaml:2:53: \"p.audit\" must be a span like 90d, 12h or 2y");
  for (const char* span : {"90", "d", "0d", "1.5d", "-1d", "90 days"}) {
    EXPECT_EQ(ComplaintOf("retention: \"" + std::string(span) + "\""),
              "tidemark.yaml:1:12: \"retention\" must be a span like 90d, 12h or 2y")
        << span;
  }
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
