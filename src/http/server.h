// The http server as a whole: listens, reads requests, has the router's pages answer them, and
// streams events. Born listening. Run may be called once, from any thread; the rest from any.
//
//   http::Server server({.listen_port = 8480, .store_dsn = dsn});
//   server.Run(stop);   // until a stop is requested
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>

#include "http/options.h"

namespace tidemark::http {

class Server {
 public:
  /// Throws 55006 when the address is in use, 08001 when it cannot be listened on otherwise, F0000
  /// when the files for TLS cannot be used. The store need not be there: requests are answered 503
  /// until it is.
  explicit Server(Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port it listens on.
  uint16_t port() const;

  /// Reads certificate and key again, for connections to come. Throws F0000, and goes on with the
  /// old ones, when the new ones cannot be used. Nothing without TLS.
  void ReloadTls();

  /// Serves until `stop` is requested: then accepts no more, ends the streams, lets answers under
  /// way be sent, and returns within Options::stop_timeout and a little.
  void Run(std::stop_token stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::http
