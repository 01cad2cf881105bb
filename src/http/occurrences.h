// POST /v1/datasets/{name}/occurrences: somebody who knows the dataset's secret says that it has
// changed. Verifies, keeps the occurrence in the store and answers; capturing is another process's
// work. Knows no source. docs/reference/occurrences.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/message.h"
#include "http/router.h"
#include "http/signature.h"
#include "pg/connection.h"

namespace tidemark::http {

/// How occurrences of one dataset are verified, and how many are taken.
struct OccurrenceRules {
  SignatureScheme scheme = SignatureScheme::kStandard;
  std::vector<std::string> keys;        // as SigningKey makes them; any of them will do
  std::chrono::seconds tolerance{300};  // between the signed time and ours, at most an hour
  uint32_t per_minute = 60;
};

class OccurrencePage {
 public:
  using Now = std::function<std::chrono::system_clock::time_point()>;

  /// The rules by the dataset's declared name; no other dataset takes occurrences.
  OccurrencePage(std::map<std::string, OccurrenceRules> rules, Now now);

  /// 202 with {dataset, message_id, state, received_at} once the occurrence is durable; else a
  /// problem: 404, 401, 409 for a replay, 429 with Retry-After, 503 on a standby and while the
  /// store is away (nullptr); 413 is the server's. Only what is verified reaches the store. Any
  /// thread.
  Response Answer(const Request& request, const std::string& dataset, pg::Connection* store) const;

 private:
  std::map<std::string, OccurrenceRules> rules_;
  Now now_;
};

/// Adds the page to `router`, for anybody: it verifies requests itself.
void AddOccurrences(Router& router, std::map<std::string, OccurrenceRules> rules,
                    OccurrencePage::Now now);

}  // namespace tidemark::http
