#include "http/target.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::http {
namespace {

TEST(Target, IsTakenApartAndDecoded) {
  const auto target =
      Target::Parse("/v1/a%20b?limit=5&name=x%26y&plus=a+b%2Bc&empty=&bare&limit=6");
  EXPECT_EQ(target.raw_path, "/v1/a%20b");
  EXPECT_EQ(target.path, "/v1/a b");
  const std::map<std::string, std::string> query = {
      {"limit", "5"}, {"name", "x&y"}, {"plus", "a b+c"}, {"empty", ""}, {"bare", ""}};
  EXPECT_EQ(target.query, query);
  EXPECT_EQ(Target::Parse("/?").path, "/");
  EXPECT_EQ(Target::Parse("/?&&=&").query, (std::map<std::string, std::string>{{"", ""}}));
}

TEST(Target, AnAbsoluteAddressIsItsPath) {
  EXPECT_EQ(Target::Parse("http://host:8480/v1/status?x=1").path, "/v1/status");
  EXPECT_EQ(Target::Parse("https://host/a").path, "/a");
  EXPECT_EQ(Target::Parse("http://host").path, "/");
  EXPECT_EQ(Target::Parse("http://host?x=1").query.at("x"), "1");
  EXPECT_EQ(Target::Parse("*").path, "*");
}

TEST(Target, WhatIsWrongIsRefused) {
  for (const char* text : {"", "v1", "host:443", "ftp://host/", "/%", "/%4", "/%zz", "/a%00b",
                           "/?x=%", "/?%00=1", "/%ff", "/%c3", "/%c0%80", "/%ed%a0%80",
                           "/%f4%90%80%80", "/?x=%fe"}) {
    EXPECT_THROW(Target::Parse(text), base::Error) << text;
  }
}

TEST(Target, EveryCharacterOfUnicodeIsTaken) {
  EXPECT_EQ(PercentDecoded("%C3%A4%E2%82%AC%F0%9F%8C%8A"), "ä€🌊");
  EXPECT_EQ(PercentDecoded("\xF4\x8F\xBF\xBF"), "\xF4\x8F\xBF\xBF");
}

}  // namespace
}  // namespace tidemark::http
