#include "gateway/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <new>

#include "base/error.h"

namespace tidemark::gateway {
namespace {

using base::Error;

// A record's worth: more at once would only make OpenSSL's buffers larger.
constexpr size_t kSliceBytes = 16 * 1024;

}  // namespace

void Tls::Free::operator()(ssl_st* session) const { SSL_free(session); }

Tls::Tls(const TlsIdentity& identity, const Options& options)
    : options_(options), session_(SSL_new(identity.context())) {
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (!session_ || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    throw std::bad_alloc();
  }
  SSL_set_bio(session_.get(), in, out);  // they are the session's from here on
  SSL_set_accept_state(session_.get());
}

bool Tls::open() const { return SSL_is_init_finished(session_.get()) == 1; }

void Tls::Receive(std::string_view encrypted, std::string& plain, std::string& to_peer) {
  ERR_clear_error();
  std::array<char, kSliceBytes> slice;
  try {
    while (!encrypted.empty()) {
      const auto part = encrypted.substr(0, kSliceBytes);
      encrypted.remove_prefix(part.size());
      BIO_write(SSL_get_rbio(session_.get()), part.data(), static_cast<int>(part.size()));
      if (!open()) Accept();
      if (!open() || ended_) continue;
      int bytes = 0;
      while ((bytes = SSL_read(session_.get(), slice.data(), slice.size())) > 0) {
        plain.append(slice.data(), static_cast<size_t>(bytes));
      }
      const int why = SSL_get_error(session_.get(), bytes);
      ended_ = why == SSL_ERROR_ZERO_RETURN;
      if (!ended_ && why != SSL_ERROR_WANT_READ) {
        throw Error(base::kProtocolViolation, "TLS error: " + TlsErrorText());
      }
    }
  } catch (const Error&) {
    TakeOutput(to_peer);
    throw;
  }
  TakeOutput(to_peer);
}

void Tls::Accept() {
  const int done = SSL_do_handshake(session_.get());
  if (done != 1) {
    if (SSL_get_error(session_.get(), done) == SSL_ERROR_WANT_READ) return;
    throw Error(base::kProtocolViolation, "could not accept a TLS connection: " + TlsErrorText());
  }
  const unsigned char* protocol = nullptr;
  unsigned int protocol_bytes = 0;
  SSL_get0_alpn_selected(session_.get(), &protocol, &protocol_bytes);
  if (options_.requires_alpn && protocol_bytes == 0) {
    throw Error(base::kProtocolViolation,
                "could not accept a direct TLS connection: no protocol was named (ALPN)");
  }
}

void Tls::Send(std::string_view plain, std::string& to_peer) {
  if (!open()) return;
  ERR_clear_error();
  while (!plain.empty()) {
    const auto part = plain.substr(0, kSliceBytes);
    plain.remove_prefix(part.size());
    if (SSL_write(session_.get(), part.data(), static_cast<int>(part.size())) <= 0) {
      throw Error(base::kProtocolViolation, "TLS error: " + TlsErrorText());
    }
    TakeOutput(to_peer);
  }
}

void Tls::FinishSending(std::string& to_peer) {
  if (!open()) return;
  ERR_clear_error();
  SSL_shutdown(session_.get());  // does not wait for the peer's farewell
  ERR_clear_error();
  TakeOutput(to_peer);
}

void Tls::TakeOutput(std::string& to_peer) {
  BIO* out = SSL_get_wbio(session_.get());
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(out, &bytes);
  if (count > 0) to_peer.append(bytes, static_cast<size_t>(count));
  BIO_reset(out);
}

}  // namespace tidemark::gateway
