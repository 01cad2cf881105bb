#include "http/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "http/metrics_text.h"

namespace tidemark::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsText, EscapesLabelsAndHelpAsTheFormatAsks) {
  MetricsText text;
  text.Family("x", MetricType::kGauge, "one \\ two\nthree \"quoted\"");
  text.Sample({{"a", "back\\slash"}, {"b", "new\nline"}, {"c", "\"quoted\""}}, 1.5);
  EXPECT_EQ(text.text(),
            "# HELP x one \\\\ two\\nthree \"quoted\"\n# TYPE x gauge\n"
            "x{a=\"back\\\\slash\",b=\"new\\nline\",c=\"\\\"quoted\\\"\"} 1.5\n");
}

TEST(MetricsText, AFamilyWithoutSamplesIsLeftOut) {
  MetricsText text;
  text.Family("empty_total", MetricType::kCounter, "Nothing.");
  text.Family("full_total", MetricType::kCounter, "Something.");
  text.Sample({}, 3);
  text.Sample({}, 4);
  EXPECT_EQ(text.text(), "# HELP full_total Something.\n# TYPE full_total counter\n"
                         "full_total 3\nfull_total 4\n");
}

TEST(MetricsText, NumbersAreExactWhereTheyCanBe) {
  const auto written = [](double value) {
    MetricsText text;
    text.Family("x", MetricType::kGauge, "");
    text.Sample({}, value);
    const auto& all = text.text();
    return all.substr(all.rfind(' ') + 1);
  };
  EXPECT_EQ(written(9007199254740991.0), "9007199254740991\n");
  EXPECT_EQ(written(-3), "-3\n");
  EXPECT_EQ(written(0.1), "0.1\n");
  EXPECT_EQ(written(1e300), "1e+300\n");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
}

temporal::Measures Specimen() {
  temporal::Measures measures{.store_id = "a-b-c", .last_basis = 12};
  measures.last_basis_age_seconds = 1.25;
  temporal::MirrorMeasures live{.name = "shop", .source = "shop", .state = "streaming"};
  live.alive = live.readable = true;
  live.lag_bytes = 100;
  live.retained_bytes = 4096;
  live.commits = 77;
  temporal::MirrorMeasures fresh{.name = "new \"one\"", .source = "shop", .state = "unknown"};
  measures.mirrors = {live, fresh};
  temporal::CaptureMeasures capture{.dataset = "crm.customers", .source = "crm"};
  capture.captures = 5;
  capture.failures = 2;
  capture.capture_seconds = 1.5;
  measures.captures = {capture};
  measures.rows = {{.dataset = "public.orders", .journal = "shop", .live_rows = 10, .puts = 30,
                    .deletions = 20}};
  return measures;
}

TEST(Metrics, WhatIsNotKnownIsLeftOut) {
  const auto text = MetricsPage(Specimen(), {});
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_lag_bytes{mirror=\"shop\"} 100\n"));
  EXPECT_THAT(text, Not(HasSubstr("tidemark_mirror_lag_bytes{mirror=\"new")));
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_up{mirror=\"new \\\"one\\\"\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_mirror_commits_total{mirror=\"shop\"} 77\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_capture_failures_total{dataset=\"crm.customers\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("tidemark_dataset_puts_total{dataset=\"public.orders\",journal=\"shop\"} "
                        "30\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_store_up 1\n"));
}

TEST(Metrics, WithoutTheStoreTheServersOwnRemain) {
  const auto text = MetricsPage(std::nullopt, {.connections = 3, .requests = 9});
  EXPECT_THAT(text, HasSubstr("tidemark_store_up 0\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_http_connections 3\n"));
  EXPECT_THAT(text, HasSubstr("tidemark_http_requests_total 9\n"));
  EXPECT_THAT(text, Not(HasSubstr("mirror")));
}

TEST(Metrics, EveryLineIsOfTheFormatAndEveryFamilyComesOnceWithItsType) {
  const std::regex sample(
      R"re([a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? [0-9.e+-]+)re");
  std::istringstream lines(MetricsPage(Specimen(), {}));
  std::set<std::string> families;
  std::string line, family, type;
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
      EXPECT_TRUE(family.starts_with("tidemark_")) << line;
    } else if (line.starts_with("# TYPE ")) {
      type = line.substr(line.rfind(' ') + 1);
      EXPECT_EQ(line, "# TYPE " + family + " " + type);
      EXPECT_EQ(family.ends_with("_total"), type == "counter") << line;
    } else {
      EXPECT_TRUE(std::regex_match(line, sample)) << line;
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), family);
    }
  }
  EXPECT_GT(families.size(), 20U);
}

}  // namespace
}  // namespace tidemark::http
