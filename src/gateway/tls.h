// One client's TLS, the server's side of it: what came encrypted in, what it says out, and back.
// Holds no socket and never waits; the handshake happens on the way. One thread. RFC 8446; manual:
// "SSL Session Encryption".
//
//   shaking hands ──► open ──► ended (the peer sends no more; we still may)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gateway/tls_identity.h"

struct ssl_st;  // OpenSSL's SSL

namespace tidemark::gateway {

class Tls {
 public:
  struct Options {
    /// A client that came without SSLRequest must name its protocol, "postgresql": otherwise one of
    /// another protocol could be made to speak to us (the ALPACA attack).
    bool requires_alpn = false;
  };
  Tls(const TlsIdentity& identity, const Options& options);

  /// What the peer sent: appends what it means to `plain`, and what is to be sent in turn, as parts
  /// of the handshake, to `to_peer`. Throws 08P01 when it is no TLS that we accept; the alert that
  /// says so to the peer is in `to_peer` then.
  void Receive(std::string_view encrypted, std::string& plain, std::string& to_peer);
  /// Appends `plain`, encrypted, to `to_peer`; nothing before the handshake is complete.
  void Send(std::string_view plain, std::string& to_peer);
  /// Appends the farewell after which we send no more.
  void FinishSending(std::string& to_peer);

  /// The handshake is complete.
  bool open() const;
  /// The peer has said that it sends no more.
  bool ended() const { return ended_; }

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };
  void Accept();
  void TakeOutput(std::string& to_peer);

  Options options_;
  std::unique_ptr<ssl_st, Free> session_;
  bool ended_ = false;
};

}  // namespace tidemark::gateway
