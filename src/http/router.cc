#include "http/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/problem.h"
#include "http/target.h"

namespace tidemark::http {

namespace {

using base::Error;

/// "/a/b" has the segments a and b, "/" one empty one.
std::vector<std::string> Segments(std::string_view path) {
  std::vector<std::string> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  for (;;) {
    const auto slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool IsName(const std::string& segment) {
  return segment.starts_with('{') && segment.ends_with('}');
}

/// The parameters when `segments`, decoded, are what `pattern` asks for.
std::optional<PathParameters> Fit(const std::vector<std::string>& pattern,
                                  const std::vector<std::string>& segments) {
  if (pattern.size() != segments.size()) return std::nullopt;
  PathParameters parameters;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (IsName(pattern[i])) {
      if (segments[i].empty()) return std::nullopt;
      parameters[pattern[i].substr(1, pattern[i].size() - 2)] = segments[i];
    } else if (pattern[i] != segments[i]) {
      return std::nullopt;
    }
  }
  return parameters;
}

}  // namespace

void Router::Add(std::string_view method, std::string_view pattern, Handler handler,
                 Access access) {
  AddPage(method, pattern, Page(std::move(handler)), access);
}

void Router::AddPage(std::string_view method, std::string_view pattern, Page page, Access access) {
  entries_.push_back({std::string(method), Segments(pattern), std::move(page), access});
}

std::variant<Router::Route, Response> Router::Find(std::string_view method,
                                                   std::string_view raw_path) const {
  auto segments = Segments(raw_path);
  for (auto& segment : segments) segment = PercentDecoded(segment);
  std::vector<std::string> allowed;
  const auto allow = [&](const std::string& one) {
    if (std::find(allowed.begin(), allowed.end(), one) == allowed.end()) allowed.push_back(one);
  };
  for (const auto& entry : entries_) {
    auto parameters = Fit(entry.segments, segments);
    if (!parameters) continue;
    if (entry.method == method || (method == "HEAD" && entry.method == "GET")) {
      return Route{&entry.page, std::move(*parameters), entry.access};
    }
    allow(entry.method);
    if (entry.method == "GET") allow("HEAD");
  }
  if (allowed.empty()) {
    return Problem(404, Error(base::kUndefinedObject, "there is nothing under this path"));
  }
  allow("OPTIONS");
  const auto list = fmt::format("{}", fmt::join(allowed, ", "));
  Response response{.status = 204, .content_type = "", .body = ""};
  if (method != "OPTIONS") {
    response = Problem(405, Error(base::kFeatureNotSupported,
                                  "this path does not answer this method")
                                .Hint(fmt::format("It answers {}.", list)));
  }
  response.headers.emplace_back("Allow", list);
  return response;
}

}  // namespace tidemark::http
