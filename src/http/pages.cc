#include "http/pages.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "http/problem.h"
#include "temporal/status.h"

namespace tidemark::http {

namespace {

using base::Error;

constexpr int64_t kBasesDefault = 20, kBasesMax = 1000;

std::optional<int64_t> ReadNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Response Json(std::string text) { return {.body = std::move(text) + "\n"}; }

Response Status(const Request&, const PathParameters&, pg::Connection& store) {
  return Json(temporal::LoadStatus(store));
}

Response Bases(const Request& request, const PathParameters&, pg::Connection& store) {
  int64_t limit = kBasesDefault;
  if (const auto given = request.query.find("limit"); given != request.query.end()) {
    const auto number = ReadNumber(given->second);
    if (!number || *number < 1 || *number > kBasesMax) {
      return Problem(Error(base::kInvalidParameter,
                           fmt::format("\"limit\" must be a number from 1 to {}", kBasesMax)));
    }
    limit = *number;
  }
  return Json(temporal::LoadBases(store, limit));
}

Response Evidence(const Request&, const PathParameters& parameters, pg::Connection& store) {
  const auto number = ReadNumber(parameters.at("basis"));
  if (!number || *number < 1) {
    return Problem(Error(base::kInvalidParameter, "a basis is named by its number"));
  }
  auto evidence = temporal::LoadEvidence(store, *number);
  if (!evidence) {
    return Problem(Error(base::kUndefinedObject, fmt::format("there is no basis {}", *number))
                       .Hint("The bases are listed under /v1/bases."));
  }
  return Json(std::move(*evidence));
}

/// This process lives.
Response Alive(const Request&, const PathParameters&) { return Json(R"({"status": "alive"})"); }

/// It can serve: the store answers, and has our schema. Anybody may ask, so it does not say where
/// the store is.
Response Ready(const Request&, const PathParameters&, pg::Connection* store) {
  if (store == nullptr) {
    return Problem(503, Error(base::kCannotConnectNow, "the store is away"));
  }
  return Json(R"({"status": "ready"})");
}

}  // namespace

void AddPages(Router& router) {
  router.AddPage("GET", "/healthz", PromptHandler(Alive), Access::kOpen);
  router.AddPage("GET", "/readyz", StoreOptionalHandler(Ready), Access::kOpen);
  router.Add("GET", "/v1/status", Status);
  router.Add("GET", "/v1/bases", Bases);
  router.Add("GET", "/v1/bases/{basis}", Evidence);
}

}  // namespace tidemark::http
