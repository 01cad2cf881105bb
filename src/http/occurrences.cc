#include "http/occurrences.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "http/problem.h"
#include "temporal/occurrence.h"

namespace tidemark::http {

using base::Error;
using base::SqlState;

namespace {

constexpr SqlState kConfigurationLimitExceeded{"53400"};
constexpr const char* kRetryAwaySeconds = "5";

// The same for a dataset that there is not and for one that takes no occurrences.
Response NotFound() {
  return Problem(404, Error(base::kUndefinedObject, "no dataset of this name takes occurrences"));
}

Response Unauthorized(const char* message, const char* hint) {
  auto response = Problem(401, Error(base::kInvalidAuthorization, message).Hint(hint));
  response.headers.emplace_back("WWW-Authenticate", "Signature");
  return response;
}

Response Unauthorized(SignatureFault fault) {
  switch (fault) {
    case SignatureFault::kMissing:
      return Unauthorized("the request is not signed",
                          "Send all headers of the signature scheme that is declared.");
    case SignatureFault::kMalformed:
      return Unauthorized("the signature is malformed",
                          "Look at the headers of the signature scheme that is declared.");
    case SignatureFault::kWrong:
      break;
  }
  return Unauthorized("the signature does not fit",
                      "Sign the body exactly as it is sent, with the secret that is declared.");
}

Response Away(const Error& error) {
  auto response = Problem(503, error);
  response.headers.emplace_back("Retry-After", kRetryAwaySeconds);
  return response;
}

Response Limited(const OccurrenceRules& rules, int64_t retry_seconds) {
  auto response = Problem(
      429, Error(kConfigurationLimitExceeded,
                 fmt::format("no more than {} occurrences a minute are taken", rules.per_minute))
               .Hint("Those that were taken are captured; send it again later only if the dataset "
                     "has changed since."));
  response.headers.emplace_back("Retry-After", std::to_string(retry_seconds));
  return response;
}

Response Accepted(const temporal::Occurrence& occurrence, const temporal::Receipt& receipt) {
  const nlohmann::ordered_json body = {{"dataset", occurrence.dataset},
                                       {"message_id", occurrence.message_id},
                                       {"state", "queued"},
                                       {"received_at", receipt.received_at}};
  return {.status = 202, .content_type = "application/json", .body = body.dump(), .headers = {}};
}

Response Keep(const temporal::Occurrence& occurrence, const OccurrenceRules& rules,
              pg::Connection& store) {
  const auto receipt = temporal::AcceptOccurrence(store, occurrence, rules.per_minute);
  switch (receipt.acceptance) {
    case temporal::Acceptance::kReplayed:
      return Problem(409, Error(base::kUniqueViolation, "this message has been accepted before")
                              .Hint("Nothing is to be done: the dataset was queued for it."));
    case temporal::Acceptance::kLimited:
      return Limited(rules, receipt.retry_seconds);
    case temporal::Acceptance::kUnknown:
      return NotFound();
    case temporal::Acceptance::kAccepted:
      break;
  }
  return Accepted(occurrence, receipt);
}

}  // namespace

OccurrencePage::OccurrencePage(std::map<std::string, OccurrenceRules> rules, Now now)
    : rules_(std::move(rules)), now_(std::move(now)) {}

Response OccurrencePage::Answer(const Request& request, const std::string& dataset,
                                pg::Connection* store) const {
  const auto found = rules_.find(dataset);
  if (found == rules_.end()) return NotFound();
  const OccurrenceRules& rules = found->second;
  const auto verified = VerifySignature(rules.scheme, rules.keys, request);
  if (const auto* fault = std::get_if<SignatureFault>(&verified)) return Unauthorized(*fault);
  const auto& message = std::get<SignedMessage>(verified);
  if (!IsWithin(message, now_(), rules.tolerance)) {
    return Unauthorized("the message was signed too long ago, or in the future",
                        "Compare the clocks of both sides, and sign each attempt anew.");
  }
  if (store == nullptr) {
    return Away(Error(base::kCannotConnectNow, "the store cannot be reached at the moment"));
  }
  temporal::Occurrence occurrence{.dataset = dataset, .message_id = message.id, .signed_at = {}};
  if (message.signed_at) occurrence.signed_at = base::Timestamp::FromSystem(*message.signed_at);
  try {
    return Keep(occurrence, rules, *store);
  } catch (const Error& error) {
    if (error.state() != base::kReadOnlyTransaction) throw;
    return Away(Error(base::kReadOnlyTransaction, "this store is a standby, which only reads")
                    .Hint("Send occurrences to a tidemark that serves the primary."));
  }
}

void AddOccurrences(Router& router, std::map<std::string, OccurrenceRules> rules,
                    OccurrencePage::Now now) {
  const auto page = std::make_shared<OccurrencePage>(std::move(rules), std::move(now));
  router.AddPage("POST", "/v1/datasets/{name}/occurrences",
                 StoreOptionalHandler([page](const Request& request, const PathParameters& path,
                                             pg::Connection* store) {
                   return page->Answer(request, path.at("name"), store);
                 }),
                 Access::kOpen);
}

}  // namespace tidemark::http
