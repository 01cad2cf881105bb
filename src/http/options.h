// What an http server is told when it is made: where it listens, where its store is, its pages and
// its limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "http/router.h"

namespace tidemark::http {

/// PEM files: the certificate with its chain, and the private key.
struct TlsFiles {
  std::string certificate_file, key_file;
};

struct Options {
  std::string listen_host = "127.0.0.1";  // an address, not a name
  uint16_t listen_port = 8480;            // 0: any free one, see Server::port()
  std::optional<TlsFiles> tls;            // nobody is served in the clear then
  std::string token;                      // who asks must show it; empty: nobody need
  std::string store_dsn;
  /// Pages besides the server's own (pages.h).
  std::function<void(Router&)> add_pages;

  /// Connections at one time; one more is told 503.
  size_t connections_max = 256;
  /// Of them those that read events; one more is told 503.
  size_t subscribers_max = 128;
  size_t head_bytes_max = size_t{16} << 10;  // request line and headers; 431
  size_t body_bytes_max = size_t{1} << 20;   // 413
  /// Threads that wait for the store, one connection each.
  size_t workers = 4;

  /// From the first byte of a request to its last; 408. The TLS handshake may take as long.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(20);
  /// How long a connection may stay without a request.
  std::chrono::milliseconds idle_timeout = std::chrono::seconds(75);
  /// How long the peer may take for one answer, or for one portion of events; it is cut then.
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);
  /// How long the store may take for one statement.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds(30);
  /// How often a comment shows that a stream of events is alive.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(15);
  /// How long a stop waits for answers that are under way.
  std::chrono::milliseconds stop_timeout = std::chrono::seconds(3);
  /// What is kept for subscribers that read as fast as events come.
  size_t ring_bytes_max = size_t{4} << 20;

  /// Receives one line for each event worth a log line; may be called by several threads at once.
  std::function<void(std::string_view)> on_log;
};

}  // namespace tidemark::http
