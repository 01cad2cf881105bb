// What a client says before its session begins: it may ask for encryption, and then either starts a
// session or cancels another. Bytes in, a decision out; no socket. One thread.
// Manual: "Start-up", "Canceling Requests in Progress".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tidemark::gateway {

class Startup {
 public:
  enum class Request { kSession, kCancel };

  /// Adds what the client sent; returns what to answer at once, mostly nothing.
  /// Throws 08P01 for a malformed packet, 0A000 for a replication session.
  std::string OnBytes(std::string_view bytes);

  /// Set once the client has said what it wants.
  const std::optional<Request>& request() const { return request_; }
  /// The StartupMessage or CancelRequest, whole, as it goes to the store.
  std::string_view packet() const { return std::string_view(bytes_).substr(0, packet_bytes_); }
  /// What the client sent after it.
  std::string_view rest() const { return std::string_view(bytes_).substr(packet_bytes_); }

 private:
  std::string bytes_;
  size_t packet_bytes_ = 0;
  std::optional<Request> request_;
  bool asked_tls_ = false, asked_gss_ = false;
};

}  // namespace tidemark::gateway
