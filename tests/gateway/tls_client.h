// For tests: a client that speaks bytes under TLS, asked for or direct. One thread; every wait ends
// after half a minute.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "wire/message.h"

namespace tidemark::tests {

class TlsClient {
 public:
  struct Options {
    bool direct = false;    // no SSLRequest
    std::string_view alpn;  // empty: none
  };
  TlsClient(uint16_t port, const Options& options)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        session_(SSL_new(context_.get()), SSL_free) {
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("connect");
    }
    if (!options.direct) {
      std::string request;
      wire::WriteTlsRequest(request);
      char answer = 0;
      if (::send(fd_, request.data(), request.size(), 0) < 0 || ::recv(fd_, &answer, 1, 0) != 1 ||
          answer != 'S') {
        throw std::runtime_error("TLS was refused");
      }
    }
    SSL_set_fd(session_.get(), fd_);
    if (!options.alpn.empty()) {
      const std::string wire =
          static_cast<char>(options.alpn.size()) + std::string(options.alpn);
      SSL_set_alpn_protos(session_.get(), reinterpret_cast<const unsigned char*>(wire.data()),
                          static_cast<unsigned>(wire.size()));
    }
    connected_ = SSL_connect(session_.get()) == 1;
  }
  ~TlsClient() { ::close(fd_); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// The handshake came to its end.
  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  /// No more will be sent.
  void FinishSending() { SSL_shutdown(session_.get()); }
  /// One message, as type and body; empty at the end.
  std::string Read() {
    std::string header(5, 0);
    if (!Fill(header)) return {};
    std::string body(wire::ReadHeader(header)->body_bytes, 0);
    Fill(body);
    return header[0] + body;
  }
  /// The other side has ended, and said so before it closed.
  bool ended_cleanly() const {
    return (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0;
  }

 private:
  bool Fill(std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const int n =
          SSL_read(session_.get(), bytes.data() + at, static_cast<int>(bytes.size() - at));
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  int fd_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> session_;
  bool connected_ = false;
};

}  // namespace tidemark::tests
