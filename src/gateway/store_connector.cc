#include "gateway/store_connector.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <string>
#include <utility>

namespace tidemark::gateway {

using boost::asio::ip::tcp;
using Endpoint = boost::asio::generic::stream_protocol::endpoint;

StoreConnector::StoreConnector(Stream::Socket& socket, OnConnected on_connected)
    : socket_(socket), on_connected_(std::move(on_connected)), resolver_(socket.get_executor()) {}

void StoreConnector::Connect(const StoreAddress& address, Stream::Socket& socket,
                             OnConnected on_connected) {
  std::shared_ptr<StoreConnector> connector(new StoreConnector(socket, std::move(on_connected)));
  if (!address.host.starts_with('/')) return connector->Resolve(address);
  const boost::asio::local::stream_protocol::endpoint path(
      fmt::format("{}/.s.PGSQL.{}", address.host, address.port));
  connector->ConnectTo({Endpoint(path)});
}

void StoreConnector::Resolve(const StoreAddress& address) {
  resolver_.async_resolve(
      address.host, fmt::format("{}", address.port),
      [self = shared_from_this()](Stream::Error error, const tcp::resolver::results_type& found) {
        if (error) return self->on_connected_(error);
        std::vector<Endpoint> endpoints;
        for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
        self->ConnectTo(std::move(endpoints));
      });
}

void StoreConnector::ConnectTo(std::vector<Endpoint> endpoints) {
  endpoints_ = std::move(endpoints);
  boost::asio::async_connect(socket_, endpoints_,
                             [self = shared_from_this()](Stream::Error error, const Endpoint&) {
                               if (!error) SetTcpOptions(self->socket_);
                               self->on_connected_(error);
                             });
}

}  // namespace tidemark::gateway
