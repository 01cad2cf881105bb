#include "http/url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace tidemark::http {

using base::Error;

namespace {

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;
constexpr size_t kNameCharactersMax = 253;  // RFC 1035

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool IsAddress6(const std::string& host) {
  in6_addr address = {};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

uint16_t ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (code != std::errc() || end != text.data() + text.size() || port == 0) {
    throw Error(base::kInvalidParameter, "the address has no valid port");
  }
  return port;
}

/// `host:port`, `host` or `[address]:port`.
void ParseAuthority(std::string_view authority, Url& url) {
  if (authority.find('@') != std::string_view::npos) {
    throw Error(base::kInvalidParameter, "the address must not hold a user or password");
  }
  std::string_view after;
  if (authority.starts_with('[')) {
    const auto end = std::min(authority.find(']'), authority.size());
    url.host = authority.substr(1, end - 1);
    if (end == authority.size() || !IsAddress6(url.host)) {
      throw Error(base::kInvalidParameter, "the address has no valid host");
    }
    after = authority.substr(end + 1);
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    after = authority.substr(colon);
    if (url.host.empty() || url.host.size() > kNameCharactersMax ||
        !std::ranges::all_of(url.host, IsNameCharacter)) {
      throw Error(base::kInvalidParameter, "the address has no valid host");
    }
  }
  url.port = url.secure ? kHttpsPort : kHttpPort;
  if (after.empty()) return;
  url.port = ParsePort(after.starts_with(':') ? after.substr(1) : "");
}

}  // namespace

Url Url::Parse(std::string_view text) {
  Url url;
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    url.secure = false;
    text.remove_prefix(7);
  } else {
    throw Error(base::kInvalidParameter, "the address must begin with https:// or http://");
  }
  if (!std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != '#'; })) {
    throw Error(base::kInvalidParameter,
                "the address must not hold blanks, fragments or other than ASCII characters");
  }
  const auto path = std::min(text.find_first_of("/?"), text.size());
  ParseAuthority(text.substr(0, path), url);
  url.target = text.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

bool Url::IsLoopback() const {
  in_addr v4 = {};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  return host == "localhost";
}

bool Url::IsAddress() const {
  in_addr v4 = {};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 || IsAddress6(host);
}

std::string Url::Authority() const {
  const auto shown = IsAddress6(host) ? fmt::format("[{}]", host) : host;
  if (port == (secure ? kHttpsPort : kHttpPort)) return shown;
  return fmt::format("{}:{}", shown, port);
}

}  // namespace tidemark::http
