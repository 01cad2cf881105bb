#include "cli/listen_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace tidemark::cli {

using base::Error;

namespace {

using Address = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Address Resolve(const Listen& listen, const std::string& name) {
  const addrinfo wanted = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(listen.host.c_str(), std::to_string(listen.port).c_str(), &wanted,
                                 &found);
  if (code != 0) {
    throw Error(base::kCannotConnect, fmt::format("{}: cannot listen on \"{}\": {}", name,
                                                  listen.host, ::gai_strerror(code)));
  }
  return {found, ::freeaddrinfo};
}

/// A socket for `address`, closed by the destructor.
class Socket {
 public:
  explicit Socket(const Address& address)
      : fd_(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

void RequireFreePort(const Listen& listen, const std::string& name) {
  if (listen.port == 0) return;
  const auto address = Resolve(listen, name);
  const Socket socket(address);
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Listening too: with SO_REUSEADDR alone, bind() to a taken address may succeed.
  if (::bind(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 &&
      ::listen(socket.fd(), 1) == 0) {
    return;
  }
  const int why = errno;
  if (why == EADDRINUSE) {
    throw Error(base::kObjectInUse,
                fmt::format("{}: port {} of {} is taken", name, listen.port, listen.host))
        .Hint(fmt::format("Another tidemark may run there. Choose a port with {}, or in "
                          "\"{}: {{listen: …}}\"; who listens is shown by: ss -ltnp",
                          name == "http" ? "--http-port" : "--port", name));
  }
  throw Error(base::kCannotConnect, fmt::format("{}: cannot listen on {}:{}: {}", name, listen.host,
                                                listen.port, std::strerror(why)));
}

void RequireFreePorts(const Config& config) {
  RequireFreePort(config.gateway, "gateway");
  if (config.http_serving.off) return;
  RequireFreePort(config.http, "http");
}

bool IsAnswered(const Listen& listen) {
  const auto address = Resolve(listen, "gateway");
  const Socket socket(address);
  return ::connect(socket.fd(), address->ai_addr, address->ai_addrlen) == 0;
}

std::string ReachableHost(const Listen& listen) {
  return listen.host == "0.0.0.0" || listen.host == "::" || listen.host == "localhost"
             ? "127.0.0.1"
             : listen.host;
}

std::string HttpUrl(const Listen& http) {
  const auto host = ReachableHost(http);
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", http.HasTls() ? "https" : "http", is_v6 ? "[" : "", host,
                     is_v6 ? "]" : "", http.port);
}

}  // namespace tidemark::cli
