#include "http/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/error.h"
#include "http/problem.h"
#include "http/target.h"

namespace tidemark::http {

namespace beast_http = boost::beast::http;
using base::Error;

namespace {

std::string Text(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The Date header's form; days and months in English whatever the locale.
std::string HttpDate() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  ::gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

Request RequestOf(const BeastRequest& from, std::string& raw_path) {
  auto target = Target::Parse(Text(from.target()));
  raw_path = target.raw_path;
  Request request{.method = Text(from.method_string()),
                  .path = std::move(target.path),
                  .query = std::move(target.query),
                  .headers = {},
                  .body = ""};
  for (const auto& field : from) {
    auto [place, is_new] =
        request.headers.emplace(Lower(Text(field.name_string())), Text(field.value()));
    if (!is_new) place->second += ", " + Text(field.value());
  }
  if (from.version() >= 11 && from.count(beast_http::field::host) != 1) {
    throw Error(base::kInvalidParameter, "a request must have one Host header");
  }
  return request;
}

BeastResponse AnswerOf(Response response, const AnswerOptions& options) {
  BeastResponse answer;
  answer.version(options.version);
  answer.result(static_cast<unsigned>(response.status));
  answer.reason(boost::beast::string_view(StatusPhrase(response.status).data(),
                                          StatusPhrase(response.status).size()));
  answer.set(beast_http::field::server, "tidemark");
  answer.set(beast_http::field::date, HttpDate());
  answer.set(beast_http::field::cache_control, "no-store");
  answer.set("X-Content-Type-Options", "nosniff");
  if (!response.content_type.empty()) {
    answer.set(beast_http::field::content_type, response.content_type);
  }
  for (const auto& [name, value] : response.headers) answer.set(name, value);
  answer.keep_alive(options.keep_alive);
  if (response.status != 204) answer.content_length(response.body.size());
  if (!options.head_only) answer.body() = std::move(response.body);
  return answer;
}

std::string EventStreamHead(bool chunked) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nServer: tidemark\r\nDate: {}\r\nContent-Type: text/event-stream\r\n"
      "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\n"
      "{}\r\n\r\n",
      HttpDate(), chunked ? "Transfer-Encoding: chunked" : "Connection: close");
}

}  // namespace tidemark::http
