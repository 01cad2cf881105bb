// Occurrences as the store keeps them: accepted once each, claimed by the process that captures for
// them, settled by what became of that capture. The state chart stands in
// schema/0008_occurrences.sql; every state is durable. One thread (the connection's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "pg/connection.h"

namespace tidemark::temporal {

/// A wake-up on this channel says that something may have been queued.
inline constexpr const char* kOccurrencesChannel = "tidemark_occurrences";

/// One verified occurrence.
struct Occurrence {
  std::string dataset;                       // its declared name
  std::string message_id;                    // unique among what the sender has signed
  std::optional<base::Timestamp> signed_at;  // where the signature covers a time
};

enum class Acceptance {
  kAccepted,
  kReplayed,  // the same message has been accepted before
  kLimited,   // too many within a minute
  kUnknown,   // a mirror's table
};

struct Receipt {
  Acceptance acceptance = Acceptance::kAccepted;
  std::string received_at;    // kAccepted
  int64_t retry_seconds = 0;  // kLimited: when there is room again
};

/// Keeps the occurrence unless it is a replay or one too many; what is kept survives any crash. One
/// round trip. Throws 25006 on a standby.
Receipt AcceptOccurrence(pg::Connection& store, const Occurrence& occurrence, uint32_t per_minute);

/// All occurrences of a dataset that one capture answers.
struct OccurrenceClaim {
  std::string dataset;
  int64_t number = 0;
  int64_t occurrences = 0;
};

/// Those of `datasets` for which a capture is due now, or was running in a process that may have
/// died; whichever has waited longest comes first.
std::vector<std::string> LoadQueued(pg::Connection& store,
                                    const std::vector<std::string>& datasets);

/// Claims everything open of `datasets`, whether due or not; nothing where another session is at
/// it. A claim is held by this connection's session: when that ends unsettled, the next claim takes
/// it over.
std::vector<OccurrenceClaim> ClaimOccurrences(pg::Connection& store,
                                              const std::vector<std::string>& datasets);

// What became of a claim. Each does nothing to occurrences that another session has claimed since.

/// A capture that began after the claim was published, or found nothing changed.
void SettleDone(pg::Connection& store, const OccurrenceClaim& claim, int64_t capture);
/// It failed for a reason that will not pass by itself.
void SettleFailed(pg::Connection& store, const OccurrenceClaim& claim, const base::Error& error);
/// Back into the queue: at once when there was no error of the dataset's own, else after a pause
/// that doubles from one second to a minute.
void SettleQueued(pg::Connection& store, const OccurrenceClaim& claim,
                  const std::optional<base::Error>& error);

}  // namespace tidemark::temporal
