#include "http/problem.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace tidemark::http {

namespace {

using base::SqlState;

constexpr std::array<std::pair<int, std::string_view>, 25> kPhrases = {{
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

int StatusOf(SqlState state) {
  static const std::array<std::pair<SqlState, int>, 9> exact = {{
      {base::kUndefinedObject, 404},
      {base::kUndefinedTable, 404},
      {base::kSnapshotTooOld, 410},
      {base::kUniqueViolation, 409},
      {base::kNotInPrerequisiteState, 409},
      {base::kReadOnlyTransaction, 503},  // a hot standby takes nothing
      {base::kLockNotAvailable, 503},
      {base::kSerializationFailure, 503},
      {base::kInvalidAuthorization, 401},
  }};
  for (const auto& [known, status] : exact) {
    if (state == known) return status;
  }
  const auto error_class = state.error_class();
  if (error_class == "22") return 400;
  if (error_class == "08" || error_class == "53" || error_class == "57") return 503;
  return 500;
}

}  // namespace

std::string_view StatusPhrase(int status) {
  const auto found = std::find_if(kPhrases.begin(), kPhrases.end(),
                                  [&](const auto& entry) { return entry.first == status; });
  return found == kPhrases.end() ? "Unknown" : found->second;
}

Response Problem(int status, const base::Error& error) {
  nlohmann::ordered_json problem = {{"type", "about:blank"},
                                    {"title", StatusPhrase(status)},
                                    {"status", status},
                                    {"detail", error.message()},
                                    {"sqlstate", error.state().str()}};
  if (!error.detail().empty()) problem["explanation"] = error.detail();
  if (!error.hint().empty()) problem["hint"] = error.hint();
  // What the request held may be part of the message, and need not be UTF-8.
  auto body = problem.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return {.status = status,
          .content_type = "application/problem+json",
          .body = std::move(body) + "\n"};
}

Response Problem(const base::Error& error) { return Problem(StatusOf(error.state()), error); }

}  // namespace tidemark::http
