// The certificate and private key that the gateway shows its clients, read from files and checked.
// Immutable, so sessions may share it over any threads; another one replaces it, never changes it.
// Speaks TLS 1.2 and newer. Manual: "Secure TCP/IP Connections with SSL".
#pragma once

#include <memory>

#include "gateway/options.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace tidemark::gateway {

class TlsIdentity {
 public:
  /// Reads both files. The certificate file may hold the chain of its issuers after it. Throws
  /// F0000 when one cannot be read, when they do not belong together, when the key is protected by
  /// a passphrase, or when others than its owner (and root's group) may read it.
  static std::shared_ptr<const TlsIdentity> Load(const TlsFiles& files);

  ssl_ctx_st* context() const { return context_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  explicit TlsIdentity(const TlsFiles& files);

  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// What OpenSSL has to say about the last failure on this thread; it is forgotten then.
std::string TlsErrorText();

}  // namespace tidemark::gateway
