#include "tests/capture/commit_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tidemark::tests {

namespace {

constexpr int kPollMilliseconds = 20;  // how soon a stop is noticed
constexpr std::string_view kPublish = "begin_publish";
// A simple query: its letter, its length, its text.
constexpr std::string_view kCommit{
    "Q\0\0\0\x0b"
    "COMMIT\0",
    12};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    if (fd_ < 0) throw std::runtime_error("socket");
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// What is there; empty at the end.
std::string Receive(int fd) {
  std::string bytes(64 * 1024, 0);
  const auto count = ::recv(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return bytes;
}

bool Readable(int fd) {
  pollfd wanted = {fd, POLLIN, 0};
  return ::poll(&wanted, 1, kPollMilliseconds) > 0;
}

}  // namespace

CommitRelay::CommitRelay(std::string server_socket, CutAt cut_at)
    : server_socket_(std::move(server_socket)),
      cut_at_(cut_at),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0) {
    throw std::runtime_error("listen");
  }
  ::getsockname(listener_, any, &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](std::stop_token stop) { Accept(stop); });
}

CommitRelay::~CommitRelay() {
  thread_ = {};
  ::close(listener_);
}

void CommitRelay::Accept(const std::stop_token& stop) {
  std::vector<std::jthread> sessions;
  while (!stop.stop_requested()) {
    if (!Readable(listener_)) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) sessions.emplace_back([=, this](std::stop_token own) { Serve(client, own); });
  }
}

void CommitRelay::Serve(int accepted, const std::stop_token& stop) {
  const Socket client(accepted);
  const Socket server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, server_socket_.c_str(), sizeof address.sun_path - 1);
  if (::connect(server.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
  bool publishes = false, committing = false;
  std::string recent;  // of the client, so that nothing is missed between two pieces
  while (!stop.stop_requested()) {
    pollfd wanted[2] = {{client.fd(), POLLIN, 0}, {server.fd(), POLLIN, 0}};
    if (::poll(wanted, 2, kPollMilliseconds) <= 0) continue;
    if (wanted[0].revents != 0) {
      const auto bytes = Receive(client.fd());
      if (bytes.empty()) return;
      recent += bytes;
      publishes = publishes || recent.find(kPublish) != std::string::npos;
      committing = publishes && recent.ends_with(kCommit) && !has_cut_;
      if (committing && cut_at_ == CutAt::kBeforeCommit) {
        has_cut_ = true;
        return;
      }
      recent.erase(0, recent.size() - std::min(recent.size(), kPublish.size()));
      if (!SendAll(server.fd(), bytes)) return;
    }
    if (wanted[1].revents != 0) {
      const auto bytes = Receive(server.fd());
      if (bytes.empty()) return;
      if (committing) {  // the store has answered: it is done
        has_cut_ = true;
        return;
      }
      if (!SendAll(client.fd(), bytes)) return;
    }
  }
}

}  // namespace tidemark::tests
