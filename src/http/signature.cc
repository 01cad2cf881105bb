#include "http/signature.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/error.h"
#include "http/base64.h"

namespace tidemark::http {

using base::Error;

namespace {

using Verified = std::variant<SignedMessage, SignatureFault>;

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kIdBytesMax = 256;
// A sender rotates two keys, perhaps three; more would only make us compare.
constexpr size_t kSignaturesMax = 16;
constexpr size_t kTimestampDigitsMax = 12;

std::string Hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
           &size) == nullptr) {
    throw Error(base::kInternalError, "could not compute an HMAC");
  }
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string Digest(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(base::kInternalError, "could not compute a digest");
  }
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Whether one of `given` is what one of `keys` makes of `text`. Every pair is compared, so that
/// the time tells neither which key nor how much of it fits.
bool FitsAny(const std::vector<std::string>& keys, std::string_view text,
             const std::vector<std::string_view>& given, std::string (*written)(std::string_view)) {
  bool fits = false;
  for (const auto& key : keys) {
    const auto expected = written(Hmac(key, text));
    for (const auto& signature : given) {
      fits |= signature.size() == expected.size() &&
              CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) == 0;
    }
  }
  return fits;
}

std::optional<std::chrono::sys_seconds> ReadTimestamp(std::string_view text) {
  int64_t seconds = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool digits = !text.empty() && text.size() <= kTimestampDigitsMax && text.front() != '-';
  if (!digits || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

/// Printable and without the full stop that separates it from what else is signed.
bool IsMessageId(std::string_view id) {
  return !id.empty() && id.size() <= kIdBytesMax &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~' && c != '.'; });
}

Verified VerifyStandard(const std::vector<std::string>& keys, const Request& request) {
  const auto id = request.Header("webhook-id");
  const auto timestamp = request.Header("webhook-timestamp");
  const auto signatures = request.Header("webhook-signature");
  if (!id || !timestamp || !signatures) return SignatureFault::kMissing;
  const auto signed_at = ReadTimestamp(*timestamp);
  if (!IsMessageId(*id) || !signed_at) return SignatureFault::kMalformed;
  std::vector<std::string_view> given;
  for (auto signature : Split(*signatures, ' ')) {
    if (!signature.starts_with("v1,")) continue;  // v1a is asymmetric, others are yet to come
    given.push_back(signature.substr(3));
  }
  if (given.empty() || given.size() > kSignaturesMax) return SignatureFault::kMalformed;
  const auto text = fmt::format("{}.{}.{}", *id, *timestamp, request.body);
  if (!FitsAny(keys, text, given, EncodeBase64)) return SignatureFault::kWrong;
  return SignedMessage{.id = std::string(*id), .signed_at = signed_at};
}

Verified VerifyGithub(const std::vector<std::string>& keys, const Request& request) {
  auto signature = request.Header("x-hub-signature-256");
  if (!signature) return SignatureFault::kMissing;
  if (!signature->starts_with("sha256=")) return SignatureFault::kMalformed;
  signature->remove_prefix(7);
  if (!FitsAny(keys, request.body, {*signature}, Hex)) return SignatureFault::kWrong;
  return SignedMessage{.id = "sha256:" + Hex(Digest(request.body)), .signed_at = {}};
}

Verified VerifyStripe(const std::vector<std::string>& keys, const Request& request) {
  const auto header = request.Header("stripe-signature");
  if (!header) return SignatureFault::kMissing;
  std::string_view timestamp;
  std::vector<std::string_view> given;
  for (auto part : Split(*header, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (part.starts_with("t=")) {
      if (!timestamp.empty()) return SignatureFault::kMalformed;
      timestamp = part.substr(2);
    } else if (part.starts_with("v1=")) {
      given.push_back(part.substr(3));
    }
  }
  const auto signed_at = ReadTimestamp(timestamp);
  if (!signed_at || given.empty() || given.size() > kSignaturesMax) {
    return SignatureFault::kMalformed;
  }
  const auto text = fmt::format("{}.{}", timestamp, request.body);
  if (!FitsAny(keys, text, given, Hex)) return SignatureFault::kWrong;
  return SignedMessage{.id = "sha256:" + Hex(Digest(text)), .signed_at = signed_at};
}

}  // namespace

std::string SigningKey(SignatureScheme scheme, std::string_view secret) {
  std::string key(secret);
  if (scheme == SignatureScheme::kStandard && secret.starts_with(kSecretPrefix)) {
    const auto decoded = DecodeBase64(secret.substr(kSecretPrefix.size()));
    if (!decoded) {
      throw Error(base::kInvalidParameter, "what follows \"whsec_\" in the secret is no Base64");
    }
    key = *decoded;
  }
  if (key.empty()) throw Error(base::kInvalidParameter, "the secret is empty");
  return key;
}

Verified VerifySignature(SignatureScheme scheme, const std::vector<std::string>& keys,
                         const Request& request) {
  switch (scheme) {
    case SignatureScheme::kStandard:
      return VerifyStandard(keys, request);
    case SignatureScheme::kGithub:
      return VerifyGithub(keys, request);
    case SignatureScheme::kStripe:
      return VerifyStripe(keys, request);
  }
  return SignatureFault::kMalformed;
}

bool IsWithin(const SignedMessage& message, std::chrono::system_clock::time_point now,
              std::chrono::seconds tolerance) {
  if (!message.signed_at) return true;
  const auto at = std::chrono::floor<std::chrono::seconds>(now);  // no clock's range is exceeded
  return *message.signed_at <= at + tolerance && at - tolerance <= *message.signed_at;
}

std::vector<std::pair<std::string, std::string>> SignStandard(const std::vector<std::string>& keys,
                                                              std::string_view id,
                                                              std::chrono::sys_seconds at,
                                                              std::string_view body) {
  const auto timestamp = std::to_string(at.time_since_epoch().count());
  const auto text = fmt::format("{}.{}.{}", id, timestamp, body);
  std::string signatures;
  for (const auto& key : keys) {
    if (!signatures.empty()) signatures += ' ';
    signatures += "v1," + EncodeBase64(Hmac(key, text));
  }
  return {{"webhook-id", std::string(id)},
          {"webhook-timestamp", timestamp},
          {"webhook-signature", signatures}};
}

}  // namespace tidemark::http
