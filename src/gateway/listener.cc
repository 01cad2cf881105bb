#include "gateway/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/relay.h"

namespace tidemark::gateway {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Connections that are neither sessions nor in start-up: those being refused, and cancel requests.
constexpr size_t kOtherConnectionsMax = 128;
// After an accept failed, for want of file descriptors mostly.
constexpr std::chrono::milliseconds kAcceptPause{100};

size_t ThreadCount(size_t wanted) {
  if (wanted > 0) return wanted;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 4);
}

}  // namespace

class Listener::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::make_shared<const Options>(std::move(options))),
        acceptor_(io_),
        timer_(io_) {
    ReloadTls();
    Listen();
  }

  uint16_t port() const { return port_; }
  size_t sessions() const { return sessions_; }

  void ReloadTls() {
    if (!options_->tls) return;
    auto identity = TlsIdentity::Load(*options_->tls);
    const std::scoped_lock lock(mutex_);
    identity_ = std::move(identity);
  }

  void Run(std::stop_token stop) {
    std::vector<std::jthread> threads;
    StartOthers(threads);
    boost::asio::post(io_, [this] { Accept(); });
    std::stop_callback on_stop(stop, [this] { boost::asio::post(io_, [this] { Stop(); }); });
    io_.run();
    for (const auto& other : others_) other->stop();
  }

 private:
  void StartOthers(std::vector<std::jthread>& threads) {
    try {
      for (size_t i = 1; i < ThreadCount(options_->threads); ++i) {
        auto io = std::make_unique<boost::asio::io_context>(1);
        threads.emplace_back([io = io.get()] {
          const auto work = boost::asio::make_work_guard(*io);
          io->run();
        });
        others_.push_back(std::move(io));
      }
    } catch (const std::system_error& error) {
      Log(fmt::format("serving with {} threads: {}", threads.size() + 1, error.what()));
    }
  }

  /// Sessions go to the threads in turn.
  boost::asio::io_context& NextWorker() {
    const size_t worker = next_worker_++ % (others_.size() + 1);
    return worker == others_.size() ? io_ : *others_[worker];
  }

  void Listen() {
    error_code error;
    const auto address = boost::asio::ip::make_address(options_->listen_host, error);
    const tcp::endpoint endpoint(address, options_->listen_port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) {
      const bool in_use = error == boost::asio::error::address_in_use;
      throw base::Error(in_use ? base::kObjectInUse : base::kCannotConnect,
                        fmt::format("could not listen on {}:{}: {}", options_->listen_host,
                                    options_->listen_port, error.message()));
    }
    port_ = acceptor_.local_endpoint().port();
  }

  void Accept() {
    if (stopping_) return;
    acceptor_.async_accept(
        boost::asio::any_io_executor(NextWorker().get_executor()),
        [this](error_code error, tcp::socket client) { OnAccepted(error, std::move(client)); });
  }

  void OnAccepted(error_code error, tcp::socket client) {
    if (stopping_) return;
    if (error) {
      Log(fmt::format("could not accept a client: {}", error.message()));
      timer_.expires_after(kAcceptPause);
      timer_.async_wait([this](error_code) { Accept(); });
      return;
    }
    if (auto relay = Admit(std::move(client))) relay->Start();
    Accept();
  }

  /// nullptr when there are too many connections to even say so.
  std::shared_ptr<Relay> Admit(tcp::socket client) {
    if (const auto oldest = TakeOldestStartup()) {
      oldest->Stop(base::Error(base::kTooManyConnections, "too many connections are starting"));
    }
    const std::scoped_lock lock(mutex_);
    const size_t others = relays_.size() - starting_.size();
    if (others >= options_->sessions_max + kOtherConnectionsMax) return nullptr;
    auto relay =
        std::make_shared<Relay>(std::move(client), options_,
                                Relay::House{.identity = [this] { return identity(); },
                                             .started = [this](Relay* it) { EndStartup(it); },
                                             .admit = [this] { return BeginSession(); },
                                             .release = [this] { --sessions_; },
                                             .gone = [this](Relay* gone) { Forget(gone); }});
    relays_.emplace(relay.get(), relay);
    starting_.push_back(relay.get());
    return relay;
  }

  /// The one that has to go for another to come; nullptr mostly.
  std::shared_ptr<Relay> TakeOldestStartup() {
    const std::scoped_lock lock(mutex_);
    if (starting_.size() < std::max<size_t>(options_->startups_max, 1)) return nullptr;
    auto oldest = relays_.at(starting_.front());
    starting_.erase(starting_.begin());
    return oldest;
  }

  std::shared_ptr<const TlsIdentity> identity() {
    const std::scoped_lock lock(mutex_);
    return identity_;
  }

  void EndStartup(Relay* relay) {
    const std::scoped_lock lock(mutex_);
    std::erase(starting_, relay);
  }

  bool BeginSession() {
    if (++sessions_ <= options_->sessions_max) return true;
    --sessions_;
    return false;
  }

  void Forget(Relay* gone) {
    {
      const std::scoped_lock lock(mutex_);
      std::erase(starting_, gone);
      relays_.erase(gone);  // its running handler keeps it alive
    }
    boost::asio::post(io_, [this] {
      if (stopping_) EndIfDeserted();
    });
  }

  void Stop() {
    if (std::exchange(stopping_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
    std::vector<std::shared_ptr<Relay>> relays;
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [key, relay] : relays_) relays.push_back(relay);
    }
    const base::Error reason(base::kAdminShutdown,
                             "terminating connection due to administrator command");
    for (const auto& relay : relays) relay->Stop(reason);
    timer_.expires_after(options_->stop_timeout);
    timer_.async_wait([this](error_code) { io_.stop(); });
    EndIfDeserted();
  }

  /// Once stopping, the last relay to go ends the run.
  void EndIfDeserted() {
    const std::scoped_lock lock(mutex_);
    if (relays_.empty()) io_.stop();
  }

  void Log(std::string_view line) const {
    if (options_->on_log) options_->on_log(line);
  }

  std::shared_ptr<const Options> options_;
  // One thread each: a session's handlers run on one thread, without locks between them.
  boost::asio::io_context io_{1};
  std::vector<std::unique_ptr<boost::asio::io_context>> others_;
  size_t next_worker_ = 0;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer timer_;
  uint16_t port_ = 0;
  bool stopping_ = false;
  std::atomic<size_t> sessions_ = 0;
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const TlsIdentity> identity_;
  std::vector<Relay*> starting_;  // oldest first
  std::unordered_map<Relay*, std::shared_ptr<Relay>> relays_;
};

Listener::Listener(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Listener::~Listener() = default;

uint16_t Listener::port() const { return impl_->port(); }
size_t Listener::sessions() const { return impl_->sessions(); }
void Listener::ReloadTls() { impl_->ReloadTls(); }
void Listener::Run(std::stop_token stop) { impl_->Run(std::move(stop)); }

}  // namespace tidemark::gateway
