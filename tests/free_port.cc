#include "tests/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace tidemark::tests {

TakenPort::TakenPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd_, any, size) != 0 || ::listen(fd_, 1) != 0) throw std::runtime_error("listen");
  ::getsockname(fd_, any, &size);
  port_ = ntohs(address.sin_port);
}

TakenPort::~TakenPort() { ::close(fd_); }

uint16_t FreePort() { return TakenPort().port(); }

}  // namespace tidemark::tests
