#include "http/server.h"

#include <netinet/tcp.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "http/connection.h"
#include "http/event_feed.h"
#include "http/metrics.h"
#include "http/metrics_text.h"
#include "http/pages.h"
#include "http/tls_context.h"

namespace tidemark::http {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using UnackedLimit = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

// Connections beyond the limit that are at least told so.
constexpr size_t kRefusedMax = 32;
// After an accept failed, for want of file descriptors mostly.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

class Server::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), acceptor_(io_), timer_(io_) {
    if (!options_.on_log) options_.on_log = [](std::string_view) {};
    AddPages(router_);
    router_.AddPage("GET", "/v1/events", EventStream{});
    router_.AddPage("GET", "/metrics", StoreOptionalHandler([this](auto&, auto&, auto* store) {
                      return Metrics(store);
                    }));
    if (options_.add_pages) options_.add_pages(router_);
    ReloadTls();
    Listen();
  }

  uint16_t port() const { return port_; }

  void ReloadTls() {
    if (!options_.tls) return;
    auto tls = LoadTlsContext(*options_.tls);
    const std::scoped_lock lock(mutex_);
    tls_ = std::move(tls);
  }

  void Run(const std::stop_token& stop) {
    workers_.emplace(options_.store_dsn, options_.workers, options_.statement_timeout);
    house_.emplace(House{.options = options_,
                         .router = router_,
                         .workers = *workers_,
                         .ring = ring_,
                         .counts = counts_,
                         .gone = [this](Connection* gone) { Forget(gone); },
                         .became = [this](Connection* old, std::shared_ptr<Connection> now) {
                           connections_.erase(old);
                           connections_.emplace(now.get(), now);
                           now->Start();
                         }});
    EventFeed feed({.store_dsn = options_.store_dsn,
                    .on_news = [this] { PostToAll(&Connection::OnNews); },
                    .on_other_past = [this] { PostToAll(&Connection::OnOtherPast); },
                    .on_log = options_.on_log},
                   ring_);
    {
      const std::jthread feeding([&](const std::stop_token& stop_feed) { feed.Run(stop_feed); });
      boost::asio::post(io_, [this] { Accept(); });
      const std::stop_callback on_stop(stop,
                                       [this] { boost::asio::post(io_, [this] { Stop(); }); });
      io_.run();
    }
    workers_.reset();
  }

 private:
  void Listen() {
    error_code error;
    const auto address = boost::asio::ip::make_address(options_.listen_host, error);
    const tcp::endpoint endpoint(address, options_.listen_port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) {
      const bool in_use = error == boost::asio::error::address_in_use;
      throw base::Error(in_use ? base::kObjectInUse : base::kCannotConnect,
                        fmt::format("http: could not listen on {}:{}: {}", options_.listen_host,
                                    options_.listen_port, error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void Accept() {
    if (stopping_) return;
    acceptor_.async_accept(
        [this](error_code error, tcp::socket client) { OnAccepted(error, std::move(client)); });
  }

  void OnAccepted(error_code error, tcp::socket client) {
    if (stopping_) return;
    if (error) {
      options_.on_log(fmt::format("could not accept a client: {}", error.message()));
      timer_.expires_after(kAcceptPause);
      timer_.async_wait([this](error_code) { Accept(); });
      return;
    }
    Admit(std::move(client));
    Accept();
  }

  void Admit(tcp::socket client) {
    if (connections_.size() >= options_.connections_max) CloseOneIdle();
    const bool refused = connections_.size() >= options_.connections_max;
    if (connections_.size() >= options_.connections_max + kRefusedMax) return;
    error_code ignored;
    client.set_option(tcp::no_delay(true), ignored);
    // A peer that takes nothing, not even what is in its way already, is gone.
    client.set_option(UnackedLimit(static_cast<int>(2 * options_.write_timeout.count())), ignored);
    std::shared_ptr<boost::asio::ssl::context> tls;
    {
      const std::scoped_lock lock(mutex_);
      tls = tls_;
    }
    auto connection = Connection::Make(std::move(client), *house_, std::move(tls), refused);
    connections_.emplace(connection.get(), connection);
    ++counts_.connections;
    connection->Start();
  }

  void CloseOneIdle() {
    for (const auto& [key, connection] : connections_) {
      if (connection->IsIdle()) {
        const auto kept = connection;
        return kept->Close();
      }
    }
  }

  void Forget(Connection* gone) {
    connections_.erase(gone);  // its running handler keeps it alive
    --counts_.connections;
    if (stopping_ && connections_.empty()) io_.stop();
  }

  std::vector<std::shared_ptr<Connection>> Connections() const {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    return all;
  }

  void PostToAll(void (Connection::*act)()) {
    boost::asio::post(io_, [this, act] {
      for (const auto& connection : Connections()) ((*connection).*act)();
    });
  }

  void Stop() {
    if (std::exchange(stopping_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& connection : Connections()) connection->Stop();
    timer_.expires_after(options_.stop_timeout);
    timer_.async_wait([this](error_code) { io_.stop(); });
    if (connections_.empty()) io_.stop();
  }

  Response Metrics(pg::Connection* store) const {
    std::optional<temporal::Measures> measures;
    if (store != nullptr) measures = temporal::LoadMeasures(*store);
    return {.content_type = MetricsText::kContentType,
            .body = MetricsPage(measures, {.connections = counts_.connections,
                                           .subscribers = counts_.subscribers,
                                           .requests = counts_.requests,
                                           .events_sent = counts_.events_sent,
                                           .cut = counts_.cut})};
  }

  Options options_;
  Router router_;
  ServerCounts counts_;
  EventRing ring_{options_.ring_bytes_max};
  std::optional<House> house_;
  boost::asio::io_context io_{1};
  std::optional<StoreWorkers> workers_;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  uint16_t port_ = 0;
  bool stopping_ = false;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<boost::asio::ssl::context> tls_;
};

Server::Server(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;

uint16_t Server::port() const { return impl_->port(); }
void Server::ReloadTls() { impl_->ReloadTls(); }
void Server::Run(std::stop_token stop) { impl_->Run(stop); }

}  // namespace tidemark::http
