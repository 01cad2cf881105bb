#include "bench/gateway_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "bench/polling.h"

namespace tidemark::bench {

namespace {

constexpr std::chrono::seconds kStartMax{30};

class TcpSocket {
 public:
  TcpSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (fd_ < 0) throw std::runtime_error("could not make a socket");
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  }
  ~TcpSocket() { ::close(fd_); }
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;

  /// A port that is free now.
  uint16_t BindToAny() {
    socklen_t size = sizeof address_;
    if (::bind(fd_, Address(), size) != 0 || ::getsockname(fd_, Address(), &size) != 0) {
      throw std::runtime_error("could not find a free port");
    }
    return ::ntohs(address_.sin_port);
  }
  bool ConnectTo(uint16_t port) {
    address_.sin_port = ::htons(port);
    return ::connect(fd_, Address(), sizeof address_) == 0;
  }

 private:
  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }
  int fd_;
  sockaddr_in address_{};
};

}  // namespace

std::vector<std::string> ListeningOnTcp(std::vector<std::string> settings) {
  settings.push_back(fmt::format("listen_addresses = '{}'", GatewayProcess::kHost));
  settings.push_back(fmt::format("port = {}", TcpSocket().BindToAny()));
  return settings;
}

GatewayProcess::GatewayProcess(const Options& options) : port_(TcpSocket().BindToAny()) {
  const int log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw std::runtime_error("could not open " + options.log.string());
  const char* path = std::getenv("PATH");
  process_ = base::ChildProcess::Start(
      {.command = {options.program.string(), "serve", "--superusers", "--store", options.store_dsn,
                   "--port", fmt::format("{}", port_)},
       .environment = {fmt::format("PATH={}", path == nullptr ? "/usr/bin:/bin" : path)},
       .account = std::nullopt,
       .folder = "/",
       .output_fd = log,
       .kept_fds = {},
       .dies_with_parent = true});
  ::close(log);
  PollUntil("the gateway", kStartMax, [&] {
    if (process_->Wait(base::Deadline::After(std::chrono::milliseconds(0)))) {
      throw std::runtime_error("tidemark serve ended: see " + options.log.string());
    }
    return TcpSocket().ConnectTo(port_);
  });
}

}  // namespace tidemark::bench
