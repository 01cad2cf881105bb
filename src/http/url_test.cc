#include "http/url.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace tidemark::http {
namespace {

TEST(Url, IsTakenApart) {
  const auto url = Url::Parse("https://hooks.example.com:8443/in/7?key=v%20w&x");
  EXPECT_TRUE(url.secure);
  EXPECT_EQ(url.host, "hooks.example.com");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.target, "/in/7?key=v%20w&x");
  EXPECT_EQ(url.Authority(), "hooks.example.com:8443");
}

TEST(Url, LeavesOutWhatIsUsual) {
  EXPECT_EQ(Url::Parse("https://a.b").port, 443);
  EXPECT_EQ(Url::Parse("https://a.b").target, "/");
  EXPECT_EQ(Url::Parse("https://a.b:443").Authority(), "a.b");
  EXPECT_EQ(Url::Parse("http://a.b").port, 80);
  EXPECT_EQ(Url::Parse("http://a.b?q").target, "/?q");
  EXPECT_EQ(Url::Parse("http://[::1]:81/x").Authority(), "[::1]:81");
  EXPECT_EQ(Url::Parse("http://[::1]/x").host, "::1");
}

TEST(Url, KnowsLoopbackWithoutAskingANameServer) {
  for (const char* text :
       {"http://127.0.0.1", "http://127.9.9.9:1", "http://[::1]", "http://localhost:8080"}) {
    EXPECT_TRUE(Url::Parse(text).IsLoopback()) << text;
  }
  for (const char* text : {"http://10.0.0.1", "http://[fe80::1]", "http://localhost.example.com",
                           "http://127.0.0.1.example.com", "http://0.0.0.0"}) {
    EXPECT_FALSE(Url::Parse(text).IsLoopback()) << text;
  }
  EXPECT_TRUE(Url::Parse("http://[fe80::1]").IsAddress());
  EXPECT_FALSE(Url::Parse("http://127.0.0.1.example.com").IsAddress());
}

TEST(Url, RefusesWhatItDoesNotUnderstandWithoutShowingIt) {
  for (const std::string& text : std::vector<std::string>{
           "https://" + std::string(254, 'a') + "/hush", "", "hush", "ftp://a/hush", "https://",
           "https:///hush", "https://a b/hush", "https://a/hush#f", "https://u:hush@a/",
           "https://a:0/hush", "https://a:65536/hush", "https://a:/hush", "https://a:8x/hush",
           "https://[::1/hush", "https://[hush]/", "https://[::1]x/hush", "https://a\r\nhush: 1/",
           "https://a/\xc3\xa9hush", "https://a%2ehush/"}) {
    try {
      Url::Parse(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.state(), base::kInvalidParameter) << text;
      EXPECT_EQ(error.Full().find("hush"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace tidemark::http
