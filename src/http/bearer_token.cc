#include "http/bearer_token.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "http/problem.h"

namespace tidemark::http {

bool EqualInConstantTime(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < secret.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ secret[i]);
  }
  const volatile unsigned char result = difference;  // computed whole, whatever the optimiser knows
  return result == 0;
}

bool ShowsToken(const Request& request, std::string_view token) {
  if (token.empty()) return true;
  const auto header = request.Header("authorization");
  if (!header) return false;
  constexpr std::string_view kScheme = "bearer ";
  const auto fits = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  };
  if (header->size() < kScheme.size() ||
      !std::equal(kScheme.begin(), kScheme.end(), header->begin(),
                  [&](char wanted, char given) { return fits(given, wanted); })) {
    return false;
  }
  auto given = header->substr(kScheme.size());
  while (given.starts_with(' ')) given.remove_prefix(1);
  return EqualInConstantTime(given, token);
}

Response TokenWanted() {
  auto response = Problem(401, base::Error(base::kInvalidAuthorization, "a valid token is needed")
                                   .Hint("Send it as \"Authorization: Bearer TOKEN\"."));
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tidemark\"");
  return response;
}

}  // namespace tidemark::http
