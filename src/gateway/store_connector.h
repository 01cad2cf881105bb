// Makes a connection to the store's server, over a Unix socket or TCP. One strand.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "gateway/options.h"
#include "gateway/stream.h"

namespace tidemark::gateway {

class StoreConnector : public std::enable_shared_from_this<StoreConnector> {
 public:
  using OnConnected = std::function<void(Stream::Error)>;

  /// Connects `socket`, which is not open yet and must outlive the attempt: `on_connected` keeps
  /// its owner alive. Closing the socket ends the attempt.
  static void Connect(const StoreAddress& address, Stream::Socket& socket,
                      OnConnected on_connected);

 private:
  StoreConnector(Stream::Socket& socket, OnConnected on_connected);
  void Resolve(const StoreAddress& address);
  void ConnectTo(std::vector<boost::asio::generic::stream_protocol::endpoint> endpoints);

  Stream::Socket& socket_;
  OnConnected on_connected_;
  boost::asio::ip::tcp::resolver resolver_;
  std::vector<boost::asio::generic::stream_protocol::endpoint> endpoints_;
};

}  // namespace tidemark::gateway
