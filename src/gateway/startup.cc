#include "gateway/startup.h"

#include <utility>

#include "wire/message.h"

namespace tidemark::gateway {
namespace {

// As the server reads a boolean; anything else but "database" it refuses itself.
bool AsksReplication(const wire::StartupPacket& packet) {
  const auto value = packet.Find("replication");
  if (!value) return false;
  for (const std::string_view off :
       {"false", "off", "no", "0", "f", "n", "of", "fa", "fal", "fals"}) {
    if (*value == off) return false;
  }
  return true;
}

}  // namespace

std::string Startup::OnBytes(std::string_view bytes) {
  bytes_ += bytes;
  std::string answer;
  while (!request_) {
    const auto packet = wire::StartupPacket::Read(bytes_);
    if (!packet) break;
    switch (packet->kind) {
      case wire::StartupPacket::Kind::kTlsRequest:
      case wire::StartupPacket::Kind::kGssEncryptionRequest: {
        const bool tls = packet->kind == wire::StartupPacket::Kind::kTlsRequest;
        if (std::exchange(tls ? asked_tls_ : asked_gss_, true)) {
          throw base::Error(base::kProtocolViolation, "encryption was requested twice");
        }
        answer += 'N';
        bytes_.erase(0, packet->bytes);
        break;
      }
      case wire::StartupPacket::Kind::kCancelRequest:
        request_ = Request::kCancel;
        packet_bytes_ = packet->bytes;
        break;
      case wire::StartupPacket::Kind::kStartup:
        if (AsksReplication(*packet)) {
          throw base::Error(base::kFeatureNotSupported, "replication is not served here")
              .Hint("Connect to the store itself.");
        }
        request_ = Request::kSession;
        packet_bytes_ = packet->bytes;
        break;
    }
  }
  return answer;
}

}  // namespace tidemark::gateway
