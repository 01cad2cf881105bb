// The gateway as a whole, the room's only door: accepts clients and relays each to a connection of
// its own to the store. Born listening. Run may be called once, from any thread; port() from any.
//
//   gateway::Listener listener({.listen_port = 5480, .store = {"/run/tidemark", 5432}});
//   listener.Run(stop);   // until a stop is requested
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>

#include "gateway/options.h"

namespace tidemark::gateway {

class Listener {
 public:
  /// Throws 55006 when the address is in use, 08001 when it cannot be listened on otherwise, F0000
  /// when the files for TLS cannot be used. The store need not be there: clients are told so
  /// (57P03) until it is.
  explicit Listener(Options options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The port it listens on.
  uint16_t port() const;
  /// Sessions now.
  size_t sessions() const;

  /// Reads certificate and key again, for sessions to come; those that are there keep theirs.
  /// Throws F0000, and goes on with the old ones, when the new ones cannot be used. Nothing without
  /// TLS. Any thread.
  void ReloadTls();

  /// Serves until `stop` is requested: then accepts no more, tells every client 57P01, closes, and
  /// returns within Options::stop_timeout and a little.
  void Run(std::stop_token stop);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::gateway
