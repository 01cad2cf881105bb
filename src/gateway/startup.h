// What a client says before its session begins: it may ask for encryption, or begin with it at
// once, and then either starts a session or cancels another. Bytes in, a decision out; no socket.
// One thread. Manual: "Start-up", "Canceling Requests in Progress", "SSL Session Encryption".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace tidemark::gateway {

class Startup {
 public:
  enum class Request { kTls, kSession, kCancel };
  struct Rules {
    bool offers_tls = false;
    bool requires_tls = false;
    size_t bytes_max = 10'000;  // of a packet
  };
  explicit Startup(const Rules& rules) : rules_(rules) {}

  /// Adds what the client sent; returns what to answer at once, mostly nothing.
  /// Throws 08P01 for a malformed packet and for bytes that came before TLS could begin, 0A000 for
  /// a replication session, 28000 for one that had to be encrypted and is not.
  std::string OnBytes(std::string_view bytes);
  /// TLS stands between the client and OnBytes from here on; after Request::kTls.
  void OnTls();

  /// Set once the client has said what it wants.
  const std::optional<Request>& request() const { return request_; }
  /// With kTls: TLS has begun without being asked for.
  bool direct_tls() const { return direct_tls_; }
  /// The StartupMessage or CancelRequest, whole, as it goes to the store.
  std::string_view packet() const { return std::string_view(bytes_).substr(0, packet_bytes_); }
  /// What the client sent after it; with kTls, what it has sent of TLS.
  std::string_view rest() const { return std::string_view(bytes_).substr(packet_bytes_); }

 private:
  std::optional<wire::StartupPacket> ReadPacket() const;
  bool BeginsTls();
  char AnswerTlsRequest(size_t packet_bytes);
  void RequireServed(const wire::StartupPacket& packet) const;

  Rules rules_;
  std::string bytes_;
  size_t packet_bytes_ = 0;
  std::optional<Request> request_;
  bool asked_tls_ = false, asked_gss_ = false;
  bool direct_tls_ = false;
  bool encrypted_ = false;
};

}  // namespace tidemark::gateway
