#include "bench/tcp_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace tidemark::bench {

namespace {

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

uint16_t FreeTcpPort() { return TcpSocket().BindToAny(); }

bool ListensOnTcp(uint16_t port) { return TcpSocket().ConnectTo(port); }

}  // namespace tidemark::bench
