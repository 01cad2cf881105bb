#include "gateway/startup.h"

#include <algorithm>
#include <utility>

#include "wire/bytes.h"

namespace tidemark::gateway {
namespace {

// The first byte of a TLS handshake. A startup packet that began so would be 370 MB long.
constexpr char kTlsHandshake = 0x16;

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// As the server reads a boolean; anything else but "database" it refuses itself.
bool AsksReplication(const wire::StartupPacket& packet) {
  const auto value = packet.Find("replication");
  if (!value) return false;
  for (const std::string_view off :
       {"false", "off", "no", "0", "f", "n", "of", "fa", "fal", "fals"}) {
    if (std::ranges::equal(*value, off, {}, LowerCase)) return false;
  }
  return true;
}

}  // namespace

std::string Startup::OnBytes(std::string_view bytes) {
  bytes_ += bytes;
  std::string answer;
  while (!request_ && !BeginsTls()) {
    const auto packet = ReadPacket();
    if (!packet) break;
    switch (packet->kind) {
      case wire::StartupPacket::Kind::kTlsRequest:
        answer += AnswerTlsRequest(packet->bytes);
        break;
      case wire::StartupPacket::Kind::kGssEncryptionRequest:
        if (std::exchange(asked_gss_, true) || encrypted_) {
          throw base::Error(base::kProtocolViolation, "encryption was requested twice");
        }
        bytes_.erase(0, packet->bytes);
        answer += 'N';
        break;
      case wire::StartupPacket::Kind::kCancelRequest:
        request_ = Request::kCancel;
        packet_bytes_ = packet->bytes;
        break;
      case wire::StartupPacket::Kind::kStartup:
        RequireServed(*packet);
        request_ = Request::kSession;
        packet_bytes_ = packet->bytes;
        break;
    }
  }
  return answer;
}

std::optional<wire::StartupPacket> Startup::ReadPacket() const {
  if (bytes_.size() >= 4 && wire::LoadBigEndian<uint32_t>(bytes_.data()) > rules_.bytes_max) {
    throw base::Error(base::kProtocolViolation, "invalid length of startup packet");
  }
  return wire::StartupPacket::Read(bytes_);
}

// Direct TLS: only as the very first thing.
bool Startup::BeginsTls() {
  if (bytes_.empty() || bytes_.front() != kTlsHandshake) return false;
  if (encrypted_ || asked_tls_ || asked_gss_) return false;
  if (!rules_.offers_tls) {
    throw base::Error(base::kProtocolViolation, "TLS is not offered here");
  }
  direct_tls_ = true;
  request_ = Request::kTls;
  return true;
}

char Startup::AnswerTlsRequest(size_t packet_bytes) {
  if (std::exchange(asked_tls_, true) || encrypted_) {
    throw base::Error(base::kProtocolViolation, "encryption was requested twice");
  }
  bytes_.erase(0, packet_bytes);
  if (!rules_.offers_tls) return 'N';
  if (!bytes_.empty()) {
    throw base::Error(base::kProtocolViolation, "received unencrypted data after SSL request")
        .Detail(
            "This could be either a client-software bug or evidence of an attempted "
            "man-in-the-middle attack.");
  }
  request_ = Request::kTls;
  return 'S';
}

void Startup::OnTls() {
  bytes_.clear();
  request_.reset();
  encrypted_ = true;
}

void Startup::RequireServed(const wire::StartupPacket& packet) const {
  if (rules_.requires_tls && !encrypted_) {
    throw base::Error(base::kInvalidAuthorization, "unencrypted sessions are refused here")
        .Hint("Connect with sslmode=require.");
  }
  if (AsksReplication(packet)) {
    throw base::Error(base::kFeatureNotSupported, "replication is not served here")
        .Hint("Connect to the store itself.");
  }
}

}  // namespace tidemark::gateway
