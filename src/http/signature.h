// Signed HTTP messages: is this one from somebody who knows the secret, and the headers of our own.
// HMAC-SHA256 in three dresses, compared in constant time. Pure: no clock, no store.
//
//   scheme    headers                                              signed
//   standard  webhook-id, webhook-timestamp,                       id.timestamp.body
//             webhook-signature: v1,<base64> …
//   github    x-hub-signature-256: sha256=<hex>                    body
//   stripe    stripe-signature: t=<timestamp>,v1=<hex>,…           timestamp.body
//
// Standard Webhooks 1.0; GitHub, "Validating webhook deliveries"; Stripe, "Verify webhook
// signatures manually".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "http/message.h"

namespace tidemark::http {

enum class SignatureScheme { kStandard, kGithub, kStripe };

/// The key that a declared secret stands for: in the standard scheme what follows `whsec_` is
/// Base64; everything else is taken as it stands. Throws 22023, without showing the secret, when it
/// is empty or no Base64.
std::string SigningKey(SignatureScheme scheme, std::string_view secret);

/// What a valid signature vouches for.
struct SignedMessage {
  /// Told only by what is signed, so that the same message always has the same id: the sender's own
  /// (standard), or a digest of what it signed. GitHub's delivery id is not signed, so anybody
  /// could repeat a message under another one.
  std::string id;
  std::optional<std::chrono::sys_seconds> signed_at;  // not of github
};

enum class SignatureFault {
  kMissing,    // not all headers of the scheme are there
  kMalformed,  // they do not look as they should
  kWrong,      // no signature is of any of the keys
};

/// Verifies against every key, whichever fits. Looks at no clock: see IsWithin.
std::variant<SignedMessage, SignatureFault> VerifySignature(SignatureScheme scheme,
                                                            const std::vector<std::string>& keys,
                                                            const Request& request);

/// Whether a message was signed at most `tolerance` before or after `now`, or without a time.
bool IsWithin(const SignedMessage& message, std::chrono::system_clock::time_point now,
              std::chrono::seconds tolerance);

/// The headers of a message of ours in the standard scheme, with one signature of each key. `id`
/// holds no full stop.
std::vector<std::pair<std::string, std::string>> SignStandard(const std::vector<std::string>& keys,
                                                              std::string_view id,
                                                              std::chrono::sys_seconds at,
                                                              std::string_view body);

}  // namespace tidemark::http
