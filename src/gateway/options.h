// What a gateway is told when it is made: where it listens, where its store is, and its limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark::gateway {

/// The store's server: a folder with its Unix socket when `host` begins with a slash, else a host
/// name or address reached over TCP.
struct StoreAddress {
  std::string host = "/var/run/postgresql";
  uint16_t port = 5432;
};

/// PEM files: the certificate, with its issuers after it if they are not the clients' roots, and
/// the private key.
struct TlsFiles {
  std::string certificate_file, key_file;
};

struct Options {
  std::string listen_host = "127.0.0.1";  // an address, not a name
  uint16_t listen_port = 5480;            // 0: any free one, see Listener::port()
  StoreAddress store;

  /// What clients that ask for TLS are shown; they are refused (`N`) without it.
  std::optional<TlsFiles> tls;
  /// Refuses sessions that are not encrypted, with 28000. Cancel requests need not be: libpq before
  /// version 17 never encrypts them.
  bool requires_tls = false;

  /// Sessions at one time; one more is refused with 53300.
  size_t sessions_max = 1000;
  /// Connections that have not yet said what they want; one more ends the oldest of them, so that
  /// those who never will do not keep out others.
  size_t startups_max = 128;
  /// Whether the store's superusers are served; refused with 28000 otherwise.
  bool superusers = true;
  /// Threads that run sessions; a session is on one at a time. 0: up to four, one a processor.
  size_t threads = 0;
  /// Query and Parse messages up to this size may be rewritten; longer ones pass unchanged.
  size_t text_bytes_max = size_t{64} << 20;
  /// The StartupMessage; a longer one gets 08P01. The store takes no more than the default.
  size_t startup_bytes_max = 10'000;
  /// From accept to the whole StartupMessage, the TLS handshake included; from there on the store's
  /// authentication_timeout.
  std::chrono::milliseconds startup_timeout = std::chrono::seconds(60);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  /// How long bytes that are on their way to one side may take after the other side has closed.
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(60);
  /// How long a stop waits for sessions to take their farewell.
  std::chrono::milliseconds stop_timeout = std::chrono::seconds(3);

  /// Receives one line for each event worth a log line; may be called by several threads at once.
  std::function<void(std::string_view)> on_log;
};

}  // namespace tidemark::gateway
